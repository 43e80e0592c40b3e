"""Filters over examples: what is dropped of a data set, and for what reason.

An example is `{"key", "image_bytes", "texts", "labels"}`. A filter is a function from a
list of examples to a list of reasons, None for an example that is kept; `kept` applies
filters one after another and counts what each of them drops.
"""

import collections
import dataclasses
import hashlib
import heapq
import itertools
import re

import tensorflow as tf

from basic_tf.data import decoding

CHUNK = 1024  # examples that a filter sees at a time
MAX_PAIRS = 20_000  # of a query (CLIP section 2.2)
_WORD = re.compile(r"\w+")


@dataclasses.dataclass
class Report:
    """Counts of what was read, and of what was dropped by reason."""

    read: int = 0
    dropped: collections.Counter = dataclasses.field(
        default_factory=collections.Counter
    )

    @property
    def kept(self):
        return self.read - self.dropped.total()

    def __str__(self):
        counts = [f"{count} {reason}" for reason, count in self.dropped.most_common()]
        return f"kept {self.kept} of {self.read} examples" + (
            f"; dropped {', '.join(counts)}" if counts else ""
        )


def kept(examples, filters, report):
    """The examples that no filter drops, in their order.

    Args:
        examples: iterable of examples.
        filters: functions from a list of examples to a list of reasons. One is only
            asked about what those before it have kept.
        report: `Report`, added to as the examples are read.

    Yields:
        Examples.
    """
    iterator = iter(examples)
    while remaining := list(itertools.islice(iterator, CHUNK)):
        report.read += len(remaining)
        for reasons_of in filters:
            reasons = reasons_of(remaining)
            report.dropped.update(reason for reason in reasons if reason)
            remaining = [
                example
                for example, reason in zip(remaining, reasons, strict=True)
                if not reason
            ]
        yield from remaining


def short_captions(lengths, max_length):
    """Drops an example with a caption of more than `max_length` tokens.

    Args:
        lengths: function from `[N]` strings to their numbers of tokens, such as
            `tokenizer.Tokenizer(...).lengths`.
        max_length: L.
    """
    reason = f"caption of more than {max_length} tokens"

    def reasons_of(examples):
        texts = [text for example in examples for text in example["texts"]]
        is_long = iter((lengths(texts) > max_length).numpy() if texts else ())
        of_examples = [
            list(itertools.islice(is_long, len(example["texts"])))
            for example in examples
        ]
        return [reason if any(of_example) else None for of_example in of_examples]

    return reasons_of


def usable_images(min_side=1):
    """Drops what cannot be decoded, or has a side of less than `min_side` pixels."""

    def reason_of(example):
        try:
            side = _shortest_side(example["image_bytes"])
        except tf.errors.InvalidArgumentError:
            return "undecodable image"
        return f"image of less than {min_side} pixels" if side < min_side else None

    return lambda examples: [reason_of(example) for example in examples]


@tf.function(input_signature=[tf.TensorSpec([], tf.string)])
def _shortest_side(image_bytes):
    return tf.reduce_min(tf.shape(decoding.decode_image(image_bytes))[:2])


def distinct_images():
    """Drops an image whose file has been seen, byte for byte, since this was made."""
    return _distinct("duplicate image", lambda example: (example["image_bytes"],))


def distinct_pairs():
    """Drops an image and texts that have been seen together since this was made."""
    return _distinct(
        "duplicate pair",
        lambda example: (
            example["image_bytes"],
            *(text.encode() for text in example["texts"]),
        ),
    )


def _distinct(reason, parts):
    seen = set()

    def reason_of(example):
        digest = _digest(*parts(example))
        if digest in seen:
            return reason
        seen.add(digest)
        return None

    return lambda examples: [reason_of(example) for example in examples]


def _digest(*parts):
    """16 bytes, which no two of 10^15 lists of bytes are likely to share."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        total.update(len(part).to_bytes(8))  # ("ab", "c") is not ("a", "bc")
        total.update(part)
    return total.digest()


def keys_outside(keys, reason):
    """Drops the examples with the given keys, such as contaminated ones."""
    keys = frozenset(keys)
    return lambda examples: [
        reason if example["key"] in keys else None for example in examples
    ]


def keys_within(keys, reason):
    """Drops the examples without one of the given keys, such as balanced ones."""
    keys = frozenset(keys)
    return lambda examples: [
        None if example["key"] in keys else reason for example in examples
    ]


def balanced_keys(examples, queries, max_pairs=MAX_PAIRS, seed=0):
    """The keys of at most `max_pairs` examples for each query (CLIP section 2.2).

    An example belongs to a query if one of its texts holds the query's words next to
    each other, in any case of letters. It is chosen if one of its queries chooses it; a
    query chooses by a hash of the key, so that neither the order of the examples nor
    how they are split into files matters.

    Args:
        examples: iterable of examples with different keys; read once.
        queries: strings.
        max_pairs: N.
        seed: int; another one chooses others.

    Returns:
        `(keys, counts)`: the set of the chosen keys, and `{query: examples that belong
        to it}`, chosen or not.

    Raises:
        ValueError: if no query holds a word.
    """
    by_words = {_words(query): query for query in queries if _words(query)}
    if not by_words:
        raise ValueError("no query holds a word: nothing to balance by")
    longest = max(map(len, by_words))
    counts = dict.fromkeys(by_words.values(), 0)
    chosen = {query: [] for query in counts}  # heaps, the highest hash at the top
    for example in examples:
        belongs = {
            by_words[words]
            for text in example["texts"]
            for words in _runs(_words(text), longest)
            if words in by_words
        }
        for query in belongs:
            counts[query] += 1
            parts = (str(seed), query, example["key"])
            digest = _digest(*(part.encode() for part in parts))
            entry = (-int.from_bytes(digest), example["key"])
            if len(chosen[query]) < max_pairs:
                heapq.heappush(chosen[query], entry)
            else:
                heapq.heappushpop(chosen[query], entry)
    return {key for heap in chosen.values() for _, key in heap}, counts


def _words(text):
    return tuple(_WORD.findall(text.casefold()))


def _runs(words, longest):
    """All runs of 1 to `longest` words, as tuples."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + longest, len(words)) + 1):
            yield words[start:end]
