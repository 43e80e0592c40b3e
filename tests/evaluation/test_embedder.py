"""Encoders that give what can be said by hand."""

import types

import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import sources
from basic_tf.evaluation import embedder
from tests.data.source_files import picture


@pytest.fixture
def run():
    """Colours for images; for texts their lengths, twice."""
    model = types.SimpleNamespace(
        encode_image=lambda images: tf.reduce_mean(images, (1, 2)),
        encode_text=lambda lengths: tf.repeat(lengths[:, tf.newaxis], 2, axis=1),
    )
    return types.SimpleNamespace(model=model, tokenizer=tf.strings.length, image_size=4)


def test_texts_are_encoded_some_at_a_time(run, monkeypatch):
    monkeypatch.setattr(embedder, "MAX_TEXTS", 2)
    seen = []
    run.tokenizer = lambda texts: seen.append(len(texts)) or tf.strings.length(texts)
    found = embedder.Embedder(run).texts(["a", "bb", "", "dddd", "eee"])
    np.testing.assert_array_equal(found, np.repeat([[1], [2], [0], [4], [3]], 2, 1))
    assert seen == [2, 2, 1]


def test_every_caption_knows_its_image(run):
    images = [picture("red"), picture("blue")]
    counts = np.array([2, 1])
    examples = sources.Examples(images, ["a", "bb", "ccc"], caption_counts=counts)
    found, texts, image_of_text = embedder.Embedder(run).pairs(examples, "x", "x")
    np.testing.assert_allclose(found, [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(texts[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(image_of_text, [0, 0, 1])
