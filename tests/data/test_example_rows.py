"""Rows say of an example what a table of examples does."""

import collections
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.data import example_rows, tfrecord_source
from basic_tf.data.example_table import Examples
from tests.data.source_files import picture


def test_rows_hold_the_captions_and_labels_of_each_example(tmp_path):
    import tensorflow as tf

    records = [
        tfrecord_source.to_record(picture("red"), ["a", "b"], ["dog", "cat"], "x"),
        tfrecord_source.to_record(picture("blue"), ["c"], [], "y"),
        tfrecord_source.to_record(picture("blue"), [], ["cat"], "x"),
    ]
    path = str(tmp_path / "0.tfrecord")
    with tf.io.TFRecordWriter(path) as file:
        for record in records:
            file.write(record)
    examples = tfrecord_source.load(path)
    rows = list(example_rows.iterate(examples))
    assert [(row.number, row.key, row.texts, row.labels) for row in rows] == [
        (0, "x", ["a", "b"], ["dog", "cat"]),
        (1, "y", ["c"], []),
        (2, "x (2)", ["cat"], ["cat"]),
    ]
    # Backwards, and through another process, the images are those of the rows.
    rows = pickle.loads(pickle.dumps(rows[::-1]))
    kind = pickle.loads(pickle.dumps(examples.images.at([])))
    read = kind.at([row.place for row in rows]).reader()
    images = [read(tf.constant(index)).numpy() for index in range(3)]
    assert images == [picture("blue"), picture("blue"), picture("red")]


def test_a_label_that_training_takes_first_stays_the_first():
    examples = Examples(
        [b"", b"", b""],
        ["x", "y", "z"],
        labels=[2, -1, 0],
        label_sets=[[1, 2], [1], []],
        label_names=["a", "b", "c"],
        keys=["0", "1", "2"],
    )
    rows = example_rows.iterate(examples)
    assert [row.labels for row in rows] == [["c", "b"], ["b"], ["a"]]


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "a (3)", "a (2) (2)"])))
def test_keys_are_unique_and_the_first_of_a_name_keeps_it(keys):
    unique = example_rows.unique_keys(keys)
    assert len(set(unique)) == len(keys)
    for key in set(keys):
        assert unique[keys.index(key)] == key


def test_shards_are_even_and_depend_on_key_and_seed_alone():
    keys = [f"photos/{number}.jpg" for number in range(8000)]
    shards = [example_rows.shard_of(0, key, 8) for key in keys]
    counts = collections.Counter(shards)
    assert sorted(counts) == list(range(8))
    assert all(abs(count - 1000) < 150 for count in counts.values())  # 5 deviations
    others = [example_rows.shard_of(1, key, 8) for key in keys]
    assert sum(a == b for a, b in zip(shards, others, strict=True)) < 1150


@pytest.mark.parametrize("parts", [(b"a", b"bc"), (b"ab", b"c"), (b"abc",)])
def test_a_digest_is_of_parts_not_of_their_sum(parts):
    others = {(b"a", b"bc"), (b"ab", b"c"), (b"abc",)} - {parts}
    assert example_rows.digest(*parts) not in {example_rows.digest(*o) for o in others}
