"""Embeddings of pixels that NumPy normalises, too."""

import io

import keras
import numpy as np
import pytest
from keras import layers
from PIL import Image

from basic_tf.data import sources
from basic_tf.evaluation import features
from basic_tf.models.dual_encoder import DualEncoder

IMAGE_SIZE = 4


@pytest.fixture(scope="module")
def model():
    """Embeds an image as its pixels, after batch norm by moving averages."""
    rng = np.random.default_rng(0)
    shape = (IMAGE_SIZE, IMAGE_SIZE, 3)
    norm = layers.BatchNormalization(center=False, scale=False, epsilon=0.0)
    images = keras.Sequential([keras.Input(shape), norm, layers.Flatten()])
    images.image_size = IMAGE_SIZE
    texts = keras.Sequential([keras.Input((4,)), layers.Dense(48)])
    norm.set_weights([rng.random(3), 0.5 + rng.random(3)])
    model = DualEncoder(images, texts)
    model.build()
    return model


def encode_png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def pixels():
    """Seven images; the third has one colour."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (7, IMAGE_SIZE, IMAGE_SIZE, 3)).astype(np.uint8)
    pixels[2] = (10, 200, 90)
    return pixels


def expected_embeddings(model, pixels):
    mean, variance = model.image_encoder.layers[0].get_weights()
    normed = (pixels / 255 - mean) / np.sqrt(variance.astype("float64"))
    rows = normed.reshape(len(pixels), -1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("batch_size", [1, 3, 7, 256])
def test_every_image_is_embedded_once_and_in_order(model, pixels, batch_size):
    examples = sources.Examples([encode_png(image) for image in pixels], [""] * 7)
    before = model.get_weights()
    embeddings = features.embed_images(model, examples, IMAGE_SIZE, batch_size)
    assert embeddings.dtype == np.float32
    expected = expected_embeddings(model, pixels)
    np.testing.assert_allclose(embeddings, expected, rtol=1e-5, atol=1e-6)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_encoder_is_traced_once(model, pixels, monkeypatch):
    traced, encode = [], model.encode_image

    def encode_image(images):
        traced.append(images.shape)
        return encode(images)

    monkeypatch.setattr(model, "encode_image", encode_image)
    examples = sources.Examples([encode_png(image) for image in pixels], [""] * 7)
    features.embed_images(model, examples, IMAGE_SIZE, 3)
    assert traced == [(3, IMAGE_SIZE, IMAGE_SIZE, 3)]


def test_images_of_other_sizes_are_brought_to_the_size_of_the_model(model, pixels):
    # One colour stays what it is, however it is resized.
    wide = np.broadcast_to(pixels[2, 0, 0], (5, 9, 3))
    examples = sources.Examples([encode_png(pixels[0]), encode_png(wide)], [""] * 2)
    embeddings = features.embed_images(model, examples, IMAGE_SIZE)
    expected = expected_embeddings(model, pixels[[0, 2]])
    np.testing.assert_allclose(embeddings, expected, rtol=1e-5, atol=1e-5)
