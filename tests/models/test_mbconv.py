"""MBConv and squeeze-and-excitation against their equations in float64 NumPy."""

import keras
import numpy as np
import pytest

from basic_tf.models import mbconv
from tests.models import numpy_layers
from tests.models.model_test_case import ModelTestCase, random_images


class TestSqueezeExcitation(ModelTestCase):
    arguments = (random_images(2, 4, 5, 6),)
    output_shapes = ((2, 4, 5, 6),)

    def make(self):
        return mbconv.SqueezeExcitation(squeeze_filters=3, activation="relu")


class TestMBConv(ModelTestCase):
    arguments = (random_images(2, 6, 5, 4),)
    output_shapes = ((2, 3, 3, 8),)

    def make(self):
        return mbconv.MBConv(filters=8, strides=2, stride_on="depthwise")


def numpy_squeeze_excitation(layer, x):
    reduce, reduce_bias = numpy_layers.weights(layer.reduce)
    expand, expand_bias = numpy_layers.weights(layer.expand)
    squeezed = x.mean((1, 2)) @ reduce[0, 0] + reduce_bias
    squeezed = numpy_layers.ACTIVATIONS[layer.activation](squeezed)
    gate = numpy_layers.sigmoid(squeezed @ expand[0, 0] + expand_bias)
    return x * gate[:, None, None]


def numpy_mbconv(block, inputs):
    """CoAtNet A.1: `x <- Proj(Pool(x)) + Conv(DepthConv(Conv(Norm(x), stride=2)))`."""
    parts = {layer.name: layer for layer in block.block.layers}
    activation = numpy_layers.ACTIVATIONS[block.activation]
    stride = {"expand": 1, "depthwise": 1} | {block.stride_on: block.strides}
    x = numpy_layers.batch_norm(parts["norm"], inputs)
    x = x[:, :: stride["expand"], :: stride["expand"]]
    x = x @ numpy_layers.weights(parts["expand"])[0][0, 0]
    x = activation(numpy_layers.batch_norm(parts["expand_norm"], x))
    kernel = numpy_layers.weights(parts["depthwise"])[0][..., 0]
    x = (numpy_layers.windows(x, 3, stride["depthwise"], 0) * kernel).sum((3, 4))
    x = activation(numpy_layers.batch_norm(parts["depthwise_norm"], x))
    x = numpy_squeeze_excitation(parts["se"], x)
    kernel, bias = numpy_layers.weights(parts["project"])
    return numpy_layers.shortcut(block, inputs) + x @ kernel[0, 0] + bias


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_squeeze_excitation_follows_its_equation(activation):
    layer = mbconv.SqueezeExcitation(3, activation)
    numpy_layers.assert_agrees(layer, numpy_squeeze_excitation, (2, 4, 5, 6))


@pytest.mark.parametrize("stride_on", ["expand", "depthwise"])
@pytest.mark.parametrize("filters,strides", [(6, 1), (8, 1), (6, 2), (8, 2)])
def test_mbconv_follows_its_equation(stride_on, filters, strides):
    block = mbconv.MBConv(filters, strides, stride_on)
    numpy_layers.assert_agrees(block, numpy_mbconv, (2, 6, 5, 6))


@pytest.mark.parametrize(
    "expansion_base, squeeze_base, widths",
    [
        ("input", "input", (24, 1)),
        ("output", "input", (48, 1)),
        ("input", "output", (24, 3)),
        ("output", "output", (48, 3)),
    ],
)
def test_the_ratios_are_of_the_width_that_is_named(
    expansion_base, squeeze_base, widths
):
    block = mbconv.MBConv(12, expansion_base=expansion_base, squeeze_base=squeeze_base)
    numpy_layers.assert_agrees(block, numpy_mbconv, (2, 4, 4, 6))
    parts = {layer.name: layer for layer in block.block.layers}
    assert (parts["expand"].filters, parts["se"].squeeze_filters) == widths


@pytest.mark.parametrize("field", ["expansion_base", "squeeze_base"])
def test_another_base_is_refused(field):
    with pytest.raises(ValueError, match=f"{field} 'hidden' is not input or output"):
        mbconv.MBConv(8, **{field: "hidden"})


@pytest.mark.parametrize("padding, first", [("same", 1), ("symmetric", 0)])
def test_a_strided_convolution_begins_where_its_padding_says(padding, first):
    """The middle of each window: the second of every two positions, or the first."""
    pad, own = mbconv.padding_of(padding, strides=2, name="conv")
    middle = keras.layers.DepthwiseConv2D(3, 2, padding=own, use_bias=False)
    layer = keras.Sequential([*pad, middle])
    layer.build((None, 6, 8, 3))
    middle.set_weights([np.eye(9)[4].reshape(3, 3, 1, 1).repeat(3, axis=2)])
    inputs = random_images(2, 6, 8, 3)
    np.testing.assert_array_equal(layer(inputs), inputs[:, first::2, first::2])


def test_without_a_stride_there_is_one_padding():
    assert mbconv.padding_of("symmetric", strides=1, name="conv") == ([], "same")


def test_another_padding_is_refused():
    with pytest.raises(ValueError, match="padding 'valid' is not same or symmetric"):
        mbconv.padding_of("valid", 2, "conv")


def test_mbconv_hands_its_constants_on():
    block = mbconv.MBConv(
        8, squeeze_activation="silu", batch_norm_momentum=0.9, batch_norm_epsilon=1e-5
    )
    block.build((None, 4, 4, 8))
    norms = [part for part in block.block.layers if "norm" in part.name]
    assert [(norm.momentum, norm.epsilon) for norm in norms] == [(0.9, 1e-5)] * 3
    parts = {layer.name: layer for layer in block.block.layers}
    assert parts["se"].activation == "silu"


def test_mbconv_takes_its_ratios_and_activation():
    block = mbconv.MBConv(8, 2, expansion_ratio=2, squeeze_ratio=0.5, activation="relu")
    numpy_layers.assert_agrees(block, numpy_mbconv, (2, 4, 4, 6))
    shapes = {v.path.split("block/")[-1]: tuple(v.shape) for v in block.variables}
    assert shapes["expand/kernel"] == (1, 1, 6, 12)
    assert shapes["se/reduce/kernel"] == (1, 1, 12, 3)
