"""Relative attention against its equation, one pair of positions at a time."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from basic_tf.models import relative_attention
from tests.models import numpy_layers
from tests.models.model_test_case import ModelTestCase, random_images


class TestRelativeAttention(ModelTestCase):
    arguments = (random_images(2, 3, 4, 6),)
    output_shapes = ((2, 3, 4, 8),)

    def make(self):
        return relative_attention.RelativeAttention(filters=8, head_dim=4)


class TestRelativeTransformerBlock(ModelTestCase):
    arguments = (random_images(2, 6, 5, 4),)
    output_shapes = ((2, 3, 3, 8),)

    def make(self):
        return relative_attention.RelativeTransformerBlock(
            filters=8, strides=2, head_dim=4
        )


def numpy_relative_attention(layer, x):
    """CoAtNet eq. 3, one pair of positions at a time."""
    (query, bq), (key, bk), (value, bv), (output, bo) = (
        numpy_layers.weights(projection)
        for projection in (
            layer.attention.query,
            layer.attention.key,
            layer.attention.value,
            layer.attention.output_projection,
        )
    )
    table = layer.relative_bias.numpy().astype("float64")
    batch_size, height, width, _ = x.shape
    d = layer.head_dim
    outputs = np.zeros((batch_size, height, width, layer.filters))
    for image in range(batch_size):
        for yi, xi in np.ndindex(height, width):
            mixed = []
            for head in range(layer.num_heads):
                part = slice(head * d, (head + 1) * d)
                one = (x[image, yi, xi] @ query + bq)[part]
                total, values = 0.0, np.zeros(d)
                for yj, xj in np.ndindex(height, width):
                    other = x[image, yj, xj]
                    bias = table[head, yi - yj + height - 1, xi - xj + width - 1]
                    logit = one @ (other @ key + bk)[part] / np.sqrt(d) + bias
                    total += np.exp(logit)
                    values += np.exp(logit) * (other @ value + bv)[part]
                mixed.append(values / total)
            outputs[image, yi, xi] = np.concatenate(mixed) @ output + bo
    return outputs


def numpy_transformer_block(block, inputs):
    """CoAtNet A.1: `x <- Proj(Pool(x)) + Attention(Pool(Norm(x)))`, then the FFN."""
    normed = numpy_layers.layer_norm(block.norm, inputs)
    normed = numpy_layers.max_pool(normed, block.strides)
    x = numpy_layers.shortcut(block, inputs)
    x = x + numpy_relative_attention(block.attention, normed)
    norm, expand, project = block.feed_forward.layers
    kernel, bias = numpy_layers.weights(expand)
    hidden = numpy_layers.layer_norm(norm, x) @ kernel + bias
    kernel, bias = numpy_layers.weights(project)
    return x + numpy_layers.ACTIVATIONS[block.activation](hidden) @ kernel + bias


@pytest.mark.parametrize("shape", [(2, 3, 4, 6), (1, 1, 2, 5), (2, 5, 2, 8)])
def test_relative_attention_follows_its_equation(shape):
    layer = relative_attention.RelativeAttention(filters=8, head_dim=4)
    numpy_layers.assert_agrees(layer, numpy_relative_attention, shape)


@pytest.mark.parametrize("filters,strides", [(8, 1), (12, 1), (8, 2), (12, 2)])
def test_transformer_block_follows_its_equation(filters, strides):
    block = relative_attention.RelativeTransformerBlock(filters, strides, head_dim=4)
    numpy_layers.assert_agrees(block, numpy_transformer_block, (2, 4, 3, 8))


@hypothesis.given(strategies.integers(1, 6), strategies.integers(1, 6))
def test_relative_offsets_agree_with_a_double_loop(height, width):
    offsets = relative_attention.relative_offsets(height, width)
    positions = list(np.ndindex(height, width))
    assert offsets.shape == (len(positions), len(positions))
    for i, (yi, xi) in enumerate(positions):
        for j, (yj, xj) in enumerate(positions):
            row, column = divmod(offsets[i, j], 2 * width - 1)
            assert (row, column) == (yi - yj + height - 1, xi - xj + width - 1)


def test_a_head_dim_that_does_not_divide_the_width_is_refused():
    with pytest.raises(ValueError, match="head_dim 5 does not divide filters 8"):
        relative_attention.RelativeAttention(8, head_dim=5)
