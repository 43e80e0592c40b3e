"""Examples one by one, each of which says by itself where its image is.

So that parts of a set can be sent to workers, in any order, without the whole.
"""

import dataclasses
import hashlib
import itertools


@dataclasses.dataclass(frozen=True)
class Row:
    """An example without its image; a few hundred bytes that can be pickled.

    Attributes:
        number: its index among all examples.
        key: names it; no two examples have the same.
        texts: its captions.
        labels: names of its classes, first the one that `Examples.labels` has.
        place: where its image is, for `at` of the examples' `images`.
        digest: of the image's bytes, once they were read.
    """

    number: int
    key: str
    texts: list
    labels: list
    place: object
    digest: bytes = b""


def iterate(examples):
    """Yields a `Row` for each of some `Examples`."""
    keys = unique_keys(examples.keys)
    counts = examples.caption_counts
    counts = itertools.repeat(1) if counts is None else counts.tolist()
    texts = iter(examples.captions)
    for number, (key, count) in enumerate(zip(keys, counts, strict=False)):
        yield Row(
            number=number,
            key=key,
            texts=list(itertools.islice(texts, count)),
            labels=_labels(examples, number),
            place=examples.images.place_of(number),
        )


def _labels(examples, number):
    if not examples.labels:
        return []
    first = [index for index in (examples.labels[number],) if index >= 0]
    all_of_them = dict.fromkeys(first + list(examples.label_sets[number]))
    return [examples.label_names[index] for index in all_of_them]


def unique_keys(keys):
    """The keys, a later one of the same with a number.

    >>> unique_keys(["a", "b", "a", "a", "a (2)"])
    ['a', 'b', 'a (3)', 'a (4)', 'a (2)']
    """
    taken, seen, numbers, unique = set(keys), set(), {}, []
    for key in keys:
        name = key
        if key in seen:
            of_key = numbers.setdefault(key, itertools.count(2))
            name = next(n for i in of_key if (n := f"{key} ({i})") not in taken)
            taken.add(name)
        seen.add(key)
        unique.append(name)
    return unique


def shard_of(seed, key, num_shards):
    """Index of the shard that an example belongs to, by its key and a seed alone."""
    return int.from_bytes(digest(str(seed).encode(), key.encode())) % num_shards


def digest(*parts):
    """16 bytes, which no two of 10^15 lists of bytes are likely to share."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        total.update(len(part).to_bytes(8))  # ("ab", "c") is not ("a", "bc")
        total.update(part)
    return total.digest()
