import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import tfds_reading, tfds_source
from tests.data.source_files import image_bytes

LABELS = tfds_reading.Reading(
    ("label",),
    lambda features: features["label"][tf.newaxis],
    lambda features: features["label"].names,
)


@pytest.mark.parametrize("split", ["serif", "serif[5:25]"])
def test_a_plain_label_is_read_as_the_source_does(tmp_path, split):
    ours = tfds_reading.load("glyphs/tiny", split, LABELS, tmp_path)
    source = tfds_source.load("glyphs/tiny", split, tmp_path)
    assert ours.labels == source.labels
    assert ours.label_names == source.label_names
    assert ours.keys == source.keys
    assert image_bytes(ours) == source.images


def test_examples_may_have_any_number_of_classes(tmp_path):
    reading = tfds_reading.Reading(
        ("label",),
        lambda features: tf.range(features["label"] % 3),
        lambda features: ["a", "b"],
    )
    ours = tfds_reading.load("glyphs/tiny", "serif", reading, tmp_path)
    labels = np.array(tfds_source.load("glyphs/tiny", "serif", tmp_path).labels)
    assert ours.label_sets == [list(range(label % 3)) for label in labels]
    assert [bool(row) for row in ours.label_sets] == [i >= 0 for i in ours.labels]
    pairs = zip(ours.captions, labels % 3, strict=True)
    assert all(text == ["", "a", "a and b"][count] for text, count in pairs)


def test_captions_are_counted(tmp_path):
    reading = tfds_reading.Reading(
        ("caption", "label"),
        lambda features: tf.repeat(features["caption"], 1 + features["label"] % 3),
    )
    ours = tfds_reading.load("glyphs/tiny", "serif", reading, tmp_path)
    source = tfds_source.load("glyphs/tiny", "serif", tmp_path)
    counts = 1 + np.array(source.labels) % 3
    assert ours.caption_counts.tolist() == counts.tolist()
    assert ours.captions == np.repeat(source.captions, counts).tolist()


def test_a_feature_that_is_not_there_is_named(tmp_path):
    reading = tfds_reading.Reading(("objects",), lambda features: features["objects"])
    with pytest.raises(
        ValueError, match="glyphs/tiny has no objects; its features are"
    ):
        tfds_reading.load("glyphs/tiny", "serif", reading, tmp_path)
