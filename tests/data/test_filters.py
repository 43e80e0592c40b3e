"""What filters keep and drop, for which reason, and that all of it is counted."""

import collections
import io
import itertools
import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from basic_tf.data import filters


def png(width=8, height=8, color="red"):
    file = io.BytesIO()
    Image.new("RGB", (width, height), color).save(file, "PNG")
    return file.getvalue()


def example(key="0", image_bytes=b"", texts=("a cat",)):
    return {"key": key, "image_bytes": image_bytes, "texts": list(texts), "labels": []}


def count_words(texts):
    return tf.strings.split(texts).row_lengths()


def test_an_example_with_one_long_caption_is_dropped():
    rows = [["a b c"], ["a b c d"], ["a", "a b c d e"], [], ["", "a"]]
    reasons = filters.short_captions(count_words, 3)(
        [example(texts=texts) for texts in rows]
    )
    reason = "caption of more than 3 tokens"
    assert reasons == [None, reason, reason, None, None]
    assert filters.short_captions(count_words, 3)([example(texts=[])]) == [None]


def test_images_that_cannot_be_decoded_or_are_too_small_are_dropped():
    files = [png(), png(7, 90), png(90, 7), png(8, 9), b"", b"text", png()[:-30]]
    reasons = filters.usable_images(8)([example(image_bytes=file) for file in files])
    small, broken = "image of less than 8 pixels", "undecodable image"
    assert reasons == [None, small, small, None, broken, broken, broken]


def test_the_first_of_equal_images_is_kept():
    examples = [example(image_bytes=image) for image in (b"a", b"b", b"a", b"", b"")]
    distinct = filters.distinct_images()
    reason = "duplicate image"
    assert distinct(examples) == [None, None, reason, None, reason]
    assert distinct(examples) == [reason] * 5  # also those of an earlier list
    assert filters.distinct_images()(examples[:1]) == [None]


def test_pairs_are_the_same_with_all_their_texts():
    pairs = [(b"a", ["b"]), (b"a", ["b", "c"]), (b"ab", [""]), (b"a", ["bc"])]
    examples = [example(image_bytes=image, texts=texts) for image, texts in pairs]
    distinct = filters.distinct_pairs()
    assert distinct(examples) == [None] * 4
    assert distinct(examples) == ["duplicate pair"] * 4


def test_keys_are_dropped_or_kept_by_name():
    examples = [example(key) for key in "abc"]
    assert filters.keys_outside("ab", "seen")(examples) == ["seen", "seen", None]
    assert filters.keys_within("ab", "rest")(examples) == [None, None, "rest"]


def test_what_is_dropped_is_counted_by_the_first_reason():
    rows = [
        example("a", png(), ["x"]),
        example("b", png(), ["x"]),
        example("c", b"broken", ["x x x x"]),
        example("d", b"broken", ["x"]),
        example("e", png(color="blue"), ["x"]),
    ]
    report = filters.Report()
    chosen = [
        filters.short_captions(count_words, 3),
        filters.usable_images(4),
        filters.distinct_images(),
    ]
    assert [row["key"] for row in filters.kept(rows, chosen, report)] == ["a", "e"]
    assert report.dropped == {
        "caption of more than 3 tokens": 1,
        "undecodable image": 1,
        "duplicate image": 1,
    }
    assert (report.read, report.kept) == (5, 2)
    assert str(report) == (
        "kept 2 of 5 examples; dropped 1 caption of more than 3 tokens, "
        "1 undecodable image, 1 duplicate image"
    )


def test_examples_are_read_as_they_are_asked_for():
    report = filters.Report()
    endless = (example(str(number)) for number in itertools.count())
    first = list(itertools.islice(filters.kept(endless, [], report), 3))
    assert [row["key"] for row in first] == ["0", "1", "2"]
    assert report.read == filters.CHUNK
    assert str(filters.Report(2)) == "kept 2 of 2 examples"


@given(st.lists(st.integers(0, 5)), st.integers(1, 4))
def test_duplicates_do_not_depend_on_chunks(images, chunk):
    rows = [example(str(n), bytes([image])) for n, image in enumerate(images)]
    distinct = filters.distinct_images()
    reasons = []
    for start in range(0, len(rows), chunk):
        reasons += distinct(rows[start : start + chunk])
    kept = [image for image, why in zip(images, reasons, strict=True) if not why]
    assert kept == list(dict.fromkeys(images))


def captions(count, seed):
    rng = np.random.default_rng(seed)
    words = ["red", "cat", "big", "dog", "Ice", "cream"]
    return [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(count)]


@given(st.integers(0, 1000), st.integers(1, 20))
def test_balancing_is_what_a_loop_over_queries_says(seed, max_pairs):
    texts = captions(60, seed)
    queries = ["cat", "ICE cream", "dog", "nothing"]
    examples = [example(str(n), texts=[text]) for n, text in enumerate(texts)]
    keys, counts = filters.balanced_keys(examples, queries, max_pairs)
    for query in queries:
        belongs = {
            str(n)
            for n, text in enumerate(texts)
            if f" {query.lower()} " in f" {text.lower()} "
        }
        assert counts[query] == len(belongs)
        # Another query may have chosen more of them.
        assert len(keys & belongs) >= min(max_pairs, len(belongs))
    assert len(keys) <= sum(min(max_pairs, count) for count in counts.values())


@given(st.randoms(use_true_random=False))
def test_balancing_does_not_depend_on_the_order(shuffler: random.Random):
    examples = [example(str(n), texts=[text]) for n, text in enumerate(captions(80, 1))]
    expected, counts = filters.balanced_keys(examples, ["cat", "dog"], 5)
    shuffler.shuffle(examples)
    assert filters.balanced_keys(examples, ["dog", "cat"], 5) == (expected, counts)


def test_balancing_chooses_all_alike():
    """Each of 10 examples is one of 3 that are chosen, by 3 of 10 seeds."""
    examples = [example(str(n)) for n in range(10)]
    chosen = collections.Counter()
    for seed in range(500):
        keys, _ = filters.balanced_keys(examples, ["cat"], 3, seed)
        assert len(keys) == 3
        chosen.update(keys)
    assert all(abs(count - 150) < 51 for count in chosen.values())  # 5 deviations


def test_texts_that_belong_to_no_query_are_not_chosen():
    texts = ["Cat!", "concatenate", "a cat's ice-cream", "ice and cream", ""]
    examples = [example(text, texts=[text]) for text in texts]
    keys, counts = filters.balanced_keys(examples, ["cat", "ice cream", "cat"])
    assert keys == {"Cat!", "a cat's ice-cream"}
    assert counts == {"cat": 2, "ice cream": 1}


def test_queries_without_a_word_are_refused():
    with pytest.raises(ValueError, match="no query holds a word"):
        filters.balanced_keys([], ["", " - "])
