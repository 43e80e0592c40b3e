"""What filters keep, whatever the order in which they see it."""

import collections
import itertools
import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.data import filters
from basic_tf.data.example_rows import Row


def count_words(texts):
    return tf.strings.split(texts).row_lengths()


def test_long_texts_go_each_by_itself():
    rows = [["a b c"], ["a b c d"], ["a", "a b c d e"], [], ["", "a"]]
    kept = filters.short_texts(rows, count_words, 3)
    assert kept == [["a b c"], [], ["a"], [], ["", "a"]]
    assert filters.short_texts([[], []], count_words, 3) == [[], []]


def test_pairs_are_the_same_with_all_their_texts():
    pairs = [(b"a", ["b"]), (b"a", ["b", "c"]), (b"ab", [""]), (b"a", ["bc"])]
    pairs.append((b"a", ["c", "b"]))
    digests = {
        filters.pair_digest(filters.image_digest(image), texts)
        for image, texts in [*pairs, *pairs]
    }
    assert len(digests) == len(pairs)


@given(st.permutations(range(5)))
def test_the_first_of_duplicates_is_that_of_the_lowest_number(numbers):
    rows = [Row(number, str(number), [], [], "") for number in numbers]
    first, others = filters.split_first(rows)
    assert first.number == 0
    assert sorted(row.number for row in others) == [1, 2, 3, 4]


def captions(count, seed):
    rng = np.random.default_rng(seed)
    words = ["red", "cat", "big", "dog", "Ice", "cream"]
    return [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(count)]


@given(st.integers(0, 1000))
def test_a_text_belongs_to_the_queries_whose_words_it_holds(seed):
    given_queries = ["cat", "ICE cream", "dog", "nothing"]
    queries = filters.Queries(given_queries)
    texts = captions(3, seed)
    expected = {
        query
        for query, text in itertools.product(given_queries, texts)
        if f" {query.lower()} " in f" {text.lower()} "
    }
    assert queries.of(texts) == expected


def test_words_are_whole_and_next_to_each_other():
    queries = filters.Queries(["cat", "ice cream", "cat", "Ice-Cream"])
    assert list(queries) == ["cat", "ice cream"]
    texts = ["Cat!", "concatenate", "a cat's ice-cream", "ice and cream", ""]
    belongs = [queries.of([text]) for text in texts]
    assert belongs == [{"cat"}, set(), {"cat", "ice cream"}, set(), set()]


def test_ranks_choose_all_alike():
    """Each of 10 examples is one of 3 that are chosen, by 3 of 10 seeds."""
    chosen = collections.Counter()
    keys = [str(number) for number in range(10)]
    for seed in range(500):
        random.shuffle(keys)
        lowest = sorted(keys, key=lambda key: filters.rank(seed, "cat", key))
        chosen.update(lowest[:3])
    assert all(abs(count - 150) < 51 for count in chosen.values())  # 5 deviations


def test_queries_choose_independently():
    ranks = [filters.rank(0, query, key) for query in "ab" for key in "cd"]
    assert len(set(ranks)) == 4


def test_queries_without_a_word_are_refused():
    with pytest.raises(ValueError, match="no query holds a word"):
        filters.Queries(["", " - "])
