"""Unit vectors, a temperature of 0.07, and encoders that keep their weights."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.models import coatnet, dual_encoder, text_transformer
from tests.models.model_test_case import ModelTestCase, random_images

IMAGES = random_images(3, 8, 8, 3)
TOKEN_IDS = np.array([[3, 9, 4, 1, 0], [7, 1, 0, 0, 0], [2, 2, 5, 6, 1]], "int32")


def image_encoder():
    return coatnet.CoAtNet(
        depths=(1, 1, 1),
        widths=(4, 8, 8),
        strides=(2, 2, 1),
        blocks=("mbconv", "transformer"),
        embedding_dim=6,
        image_size=8,
        head_dim=4,
    )


def text_encoder():
    return text_transformer.TextTransformer(
        vocabulary_size=10,
        max_length=8,
        num_layers=1,
        width=8,
        num_heads=2,
        embedding_dim=6,
    )


class TestDualEncoder(ModelTestCase):
    arguments = ({"image": IMAGES, "token_ids": TOKEN_IDS},)
    output_shapes = ((3, 6), (3, 6))
    mixed_dtype = "float32"

    def make(self):
        return dual_encoder.DualEncoder(image_encoder(), text_encoder())


@pytest.fixture(scope="module")
def model():
    return TestDualEncoder().make_random()


def test_embeddings_are_unit_vectors_of_what_the_encoders_give(model):
    for embed, encoder, inputs in (
        (model.encode_image, model.image_encoder, IMAGES),
        (model.encode_text, model.text_encoder, TOKEN_IDS),
    ):
        raw = encoder(inputs).numpy().astype("float64")
        norms = [math.sqrt(sum(value**2 for value in row)) for row in raw]
        expected = raw / np.array(norms)[:, None]
        np.testing.assert_allclose(embed(inputs), expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(np.linalg.norm(embed(inputs), axis=1), 1, rtol=1e-6)


def test_a_call_gives_both_embeddings(model):
    image, text = model({"image": IMAGES, "token_ids": TOKEN_IDS})
    np.testing.assert_allclose(image, model.encode_image(IMAGES), rtol=1e-6)
    np.testing.assert_allclose(text, model.encode_text(TOKEN_IDS), rtol=1e-6)


def test_logits_start_scaled_by_the_inverse_of_a_temperature_of_0_07():
    model = TestDualEncoder().make()
    model.build()
    np.testing.assert_allclose(model.log_scale, math.log(1 / 0.07), rtol=1e-7)


def test_the_log_scale_stays_float32_in_mixed_precision():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = TestDualEncoder().make()
    model.build()
    scale_in_a_layer = keras.layers.Lambda(lambda _: tf.exp(model.log_scale))
    scale = scale_in_a_layer(np.zeros(1, "float32"))
    # bfloat16 would round it to 14.3125.
    assert scale.dtype == tf.float32
    np.testing.assert_allclose(scale, 1 / 0.07, rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["kernels", "XLA"])
def test_a_zero_vector_stays_zero_and_its_gradient_is_finite(jit_compile):
    @tf.function(jit_compile=jit_compile)
    def value_and_gradient(embeddings):
        with tf.GradientTape() as tape:
            tape.watch(embeddings)
            unit = dual_encoder.normalize(embeddings)
        return unit, tape.gradient(unit, embeddings)

    vectors = tf.constant([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    unit, gradient = value_and_gradient(vectors)
    np.testing.assert_allclose(unit, [[0, 0, 0], [0.6, 0, 0.8]], rtol=1e-6)
    assert np.all(np.isfinite(gradient))


def test_normalize_keeps_the_direction_of_very_short_and_long_vectors():
    embeddings = np.array([[3e-6, 4e-6], [3e6, -4e6]], "float32")
    unit = dual_encoder.normalize(embeddings)
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0.6, -0.8]], rtol=1e-6)


def test_the_gradient_of_normalize_agrees_with_its_closed_form():
    vector = np.random.default_rng(0).normal(size=(1, 5))
    weights = np.random.default_rng(1).normal(size=(1, 5))
    embeddings = tf.constant(vector, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(embeddings)
        total = tf.reduce_sum(dual_encoder.normalize(embeddings) * weights)
    norm = np.linalg.norm(vector)
    unit = vector / norm
    expected = (weights - unit * (weights @ unit.T)) / norm
    actual = tape.gradient(total, embeddings)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_encoders_that_were_built_before_keep_their_weights():
    images, texts = image_encoder(), text_encoder()
    expected = [images(IMAGES), texts(TOKEN_IDS)]
    model = dual_encoder.DualEncoder(images, texts)
    model.build()
    actual = [images(IMAGES), texts(TOKEN_IDS)]
    for before, after in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_image_encoder_is_built_for_its_images():
    model = TestDualEncoder().make()
    model.build()
    # A SavedModel is traced for this shape; attention needs to know it.
    shape = model.image_encoder.get_build_config()["input_shape"]
    assert shape == (None, 8, 8, 3)


def test_every_variable_has_a_path_of_its_own(model):
    paths = [variable.path for variable in model.variables]
    assert len(set(paths)) == len(paths)
