"""Keras's own attention with the same weights, and a loop, give the same outputs."""

import keras
import numpy as np
import pytest

from basic_tf.models import attention
from tests.models.model_test_case import ModelTestCase, random_images, randomize_weights

QUERIES = random_images(2, 3, 6)


class TestSelfAttention(ModelTestCase):
    arguments = (random_images(2, 5, 6),)
    output_shapes = ((2, 5, 8),)

    def make(self):
        return attention.SelfAttention(filters=8, num_heads=2)


class TestSelfAttentionWithBias(ModelTestCase):
    arguments = (random_images(2, 5, 6), random_images(2, 1, 1, 5))
    output_shapes = ((2, 5, 8),)

    def make(self):
        return attention.SelfAttention(filters=8, num_heads=2)


class TestSelfAttentionOfQueries(ModelTestCase):
    arguments = (random_images(2, 5, 6), random_images(2, 1, 1, 5), QUERIES)
    output_shapes = ((2, 3, 4),)

    def make(self):
        return attention.SelfAttention(filters=8, num_heads=2, output_dim=4)


def layer_and_inputs(batch_size=3, length=7, channels=6, filters=12, num_heads=3):
    inputs = np.random.default_rng(2).normal(size=(batch_size, length, channels))
    layer = attention.SelfAttention(filters, num_heads)
    layer.build(inputs.shape)
    randomize_weights(layer, scale=0.5)
    return layer, inputs.astype("float32")


def keras_attention(layer, channels):
    """`keras.layers.MultiHeadAttention` with the weights of the layer."""
    heads, filters = layer.num_heads, layer.filters
    head_dim = filters // heads
    peer = keras.layers.MultiHeadAttention(heads, head_dim, output_shape=filters)
    peer.build((None, None, channels), (None, None, channels))
    weights = []
    for projection in (layer.query, layer.key, layer.value):
        kernel, bias = projection.get_weights()
        weights += [
            kernel.reshape(channels, heads, head_dim),
            bias.reshape(heads, head_dim),
        ]
    kernel, bias = layer.output_projection.get_weights()
    peer.set_weights([*weights, kernel.reshape(heads, head_dim, filters), bias])
    return peer


def test_it_equals_the_attention_of_keras():
    layer, inputs = layer_and_inputs()
    peer = keras_attention(layer, channels=6)
    expected = peer(inputs, inputs)
    # Sums of a dozen float32 products in another order.
    np.testing.assert_allclose(layer(inputs), expected, rtol=1e-5, atol=1e-6)


def test_a_large_negative_bias_is_the_mask_of_keras():
    layer, inputs = layer_and_inputs()
    mask = np.random.default_rng(3).random((3, 1, 7)) < 0.6
    mask[..., 0] = True
    peer = keras_attention(layer, channels=6)
    expected = peer(inputs, inputs, attention_mask=np.broadcast_to(mask, (3, 7, 7)))
    actual = layer(inputs, bias=np.where(mask, 0, -1e9)[:, None].astype("float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_bias_is_added_to_each_pair_and_head():
    layer, inputs = layer_and_inputs()
    bias = np.random.default_rng(4).normal(size=(3, 3, 7, 7)).astype("float32")
    expected = loop(layer, inputs, bias)
    np.testing.assert_allclose(layer(inputs, bias=bias), expected, rtol=1e-5, atol=1e-6)


def loop(layer, inputs, bias):
    """One query at a time, in float64."""
    query, key, value, output = (
        [weight.astype("float64") for weight in projection.get_weights()]
        for projection in (layer.query, layer.key, layer.value, layer.output_projection)
    )
    head_dim = layer.filters // layer.num_heads
    outputs = np.zeros((*inputs.shape[:2], layer.filters))
    for example, tokens in enumerate(inputs.astype("float64")):
        for position, token in enumerate(tokens):
            mixed = []
            for head in range(layer.num_heads):
                part = slice(head * head_dim, (head + 1) * head_dim)
                one = (token @ query[0] + query[1])[part] / np.sqrt(head_dim)
                logits = (tokens @ key[0] + key[1])[:, part] @ one
                weights = np.exp(logits + bias[example, head, position])
                values = (tokens @ value[0] + value[1])[:, part]
                mixed.append(weights @ values / weights.sum())
            outputs[example, position] = np.concatenate(mixed) @ output[0] + output[1]
    return outputs


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="num_heads 3 does not divide the width 8"):
        attention.SelfAttention(filters=8, num_heads=3)


def test_queries_are_answered_as_the_positions_they_are_taken_from():
    layer, inputs = layer_and_inputs()
    bias = np.random.default_rng(4).normal(size=(3, 3, 7, 7)).astype("float32")
    expected = layer(inputs, bias=bias)[:, 2:4]
    actual = layer(inputs, bias=bias[:, :, 2:4], queries=inputs[:, 2:4])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
