"""Filters: what is dropped of a data set.

What they say of an example depends on it alone, or on it and its like: workers that see
a data set in parts, in any order, drop the same of it.
"""

import itertools
import re

import numpy as np

from basic_tf.data.example_rows import digest

MAX_PAIRS = 20_000  # of a query (CLIP section 2.2)
_WORD = re.compile(r"\w+")


def short_texts(texts_of_examples, lengths, max_length):
    """The texts of at most `max_length` tokens.

    Args:
        texts_of_examples: list of lists of strings.
        lengths: function from `[N]` strings to their numbers of tokens, such as
            `tokenizer.Tokenizer(...).lengths`.
        max_length: L.

    Returns:
        List of lists, some of them perhaps empty.
    """
    texts = list(itertools.chain.from_iterable(texts_of_examples))
    is_short = iter(np.asarray(lengths(texts)) <= max_length if texts else ())
    # `zip` asks for a text before it asks whether it is short: none is asked too much.
    return [
        [text for text, keep in zip(of_example, is_short, strict=False) if keep]
        for of_example in texts_of_examples
    ]


def image_digest(image_bytes):
    """16 bytes, the same for images that are equal byte for byte."""
    return digest(image_bytes)


def pair_digest(digest_of_image, texts):
    """16 bytes, the same for equal images with the same texts in the same order."""
    return digest(digest_of_image, *(text.encode() for text in texts))


def split_first(rows):
    """Of rows that are each other's duplicates, the first of all and the others.

    Args:
        rows: `example_rows.Row`s in any order, at least one; read twice.

    Returns:
        `(the row of the lowest number, iterator over the others)`.
    """
    first = min(rows, key=lambda row: row.number)
    return first, (row for row in rows if row.number != first.number)


class Queries:
    """Queries that examples are balanced by (CLIP section 2.2).

    An example belongs to a query if one of its texts holds the query's words next to
    each other, in any case of letters. It is chosen if one of its queries chooses it; a
    query chooses the examples of the lowest `rank`.

    Args:
        queries: strings; those of the same words are one.

    Raises:
        ValueError: if no query holds a word.
    """

    def __init__(self, queries):
        self._by_words = {}
        for query in queries:
            if _words(query):
                self._by_words.setdefault(_words(query), query)
        if not self._by_words:
            raise ValueError("no query holds a word: nothing to balance by")
        self._longest = max(map(len, self._by_words))

    def __iter__(self):
        return iter(self._by_words.values())

    def of(self, texts):
        """The set of the queries that an example of these texts belongs to."""
        return {
            self._by_words[words]
            for text in texts
            for words in _runs(_words(text), self._longest)
            if words in self._by_words
        }


def rank(seed, query, key):
    """Where an example stands among those of a query, 16 bytes to sort by.

    As good as random, and the same however the examples are ordered and split.
    """
    return digest(str(seed).encode(), query.encode(), key.encode())


def _words(text):
    return tuple(_WORD.findall(text.casefold()))


def _runs(words, longest):
    """All runs of 1 to `longest` words, as tuples."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + longest, len(words)) + 1):
            yield words[start:end]
