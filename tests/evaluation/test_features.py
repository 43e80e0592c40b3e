"""Embeddings of pixels that NumPy normalises, too."""

import copy
import dataclasses
import io
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from ml_collections import ConfigDict
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


@pytest.fixture
def run(model):
    """A run of that model, which counts the images that it embeds."""
    embedded = []

    def encode_image(images):
        tf.py_function(lambda x: embedded.append(len(x)), [images], [])
        return model.encode_image(images)

    counted = types.SimpleNamespace(
        image_encoder=model.image_encoder, encode_image=encode_image
    )
    config = ConfigDict({"model": {"image_encoder": {"kind": "pixels"}}})
    return types.SimpleNamespace(
        model=counted, image_size=IMAGE_SIZE, config=config, embedded=embedded
    )


@pytest.fixture(scope="module")
def examples(pixels):
    images = [encode_png(image) for image in pixels]
    return sources.Examples(images, [""] * 7, keys=list("abcdefg"))


def test_a_split_is_embedded_once(run, examples, model, pixels, tmp_path):
    folder = tmp_path / "cache"
    first, again = (
        features.cached_embeddings(folder, run, "folder:a", examples, batch_size=3)
        for _ in range(2)
    )
    assert run.embedded == [3, 3, 3]  # the last with two that fill it up
    expected = expected_embeddings(model, pixels)
    np.testing.assert_allclose(first, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(first, again)
    assert again.dtype == np.float32


def other_weights(run, examples):
    encoder = keras.models.clone_model(run.model.image_encoder)
    weights = [w.copy() for w in run.model.image_encoder.get_weights()]
    weights[1][2] = np.nextafter(weights[1][2], 2)  # one bit of one weight
    encoder.set_weights(weights)
    run.model.image_encoder = encoder


def other_configuration(run, examples):
    run.config = copy.deepcopy(run.config)
    run.config.model.image_encoder.kind = "others"


def other_size(run, examples):
    run.image_size += 1


def other_order(run, examples):
    return dataclasses.replace(examples, keys=examples.keys[::-1])


def other_bytes(run, examples):
    return dataclasses.replace(examples, images=examples.images[::-1])


def fewer(run, examples):
    return examples.select([True] * 6 + [False])


def kept_pixels(run, examples):
    shape = (7, IMAGE_SIZE, IMAGE_SIZE, 3)
    return dataclasses.replace(examples, pixels=np.zeros(shape, np.uint8))


@pytest.mark.parametrize(
    "change",
    [
        *(other_weights, other_configuration, other_size),
        *(other_order, other_bytes, fewer, kept_pixels),
    ],
)
def test_the_key_changes_with(change, run, examples):
    key = features.cache_key(run, "folder:a", examples)
    changed = change(run, examples)
    assert features.cache_key(run, "folder:a", changed or examples) != key


def test_the_key_changes_with_the_source_and_the_preprocessing(
    run, examples, monkeypatch
):
    key = features.cache_key(run, "folder:a", examples)
    assert features.cache_key(run, "folder:b", examples) != key
    load = features.preprocessing.load_image
    monkeypatch.setattr(
        features.preprocessing, "load_image", lambda *of: load(*of) * 0.99
    )
    assert features.cache_key(run, "folder:a", examples) != key


def test_the_key_is_that_of_an_equal_model_and_of_the_same_files(run, model, examples):
    key = features.cache_key(run, "folder:a", examples)
    encoder = keras.models.clone_model(model.image_encoder)
    encoder.set_weights(model.image_encoder.get_weights())
    run.model.image_encoder = encoder
    same = sources.Examples(list(examples.images), [""] * 7, keys=list("abcdefg"))
    assert features.cache_key(run, "folder:a", same) == key


def cut_off(content, other):
    return content[:-5]


def overwritten(content, other):
    return content[:40] + b"\xff" + content[41:]


def emptied(content, other):
    return b""


def foreign(content, other):
    return other


@pytest.mark.parametrize("damage", [cut_off, overwritten, emptied, foreign])
def test_a_file_that_is_not_ours_is_told_and_written_again(
    damage, run, examples, tmp_path, caplog
):
    features.cached_embeddings(tmp_path, run, "folder:b", examples)
    (path,) = tmp_path.iterdir()
    other = path.read_bytes()
    path.unlink()
    before = features.cached_embeddings(tmp_path, run, "folder:a", examples)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    path.write_bytes(damage(content, other))
    run.embedded.clear()
    with caplog.at_level("WARNING"):
        after = features.cached_embeddings(tmp_path, run, "folder:a", examples)
    assert f"{path} is damaged or holds something else" in caplog.text
    np.testing.assert_array_equal(after, before)
    assert sum(run.embedded) == 7
    assert path.read_bytes() == content


def test_files_of_the_cache_hold_nothing_but_the_embeddings(run, examples, tmp_path):
    embeddings = features.cached_embeddings(tmp_path, run, "folder:a", examples)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size == 32 + embeddings.nbytes
