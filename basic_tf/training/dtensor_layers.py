"""Calls of layers on a mesh, where DTensor needs more than the layers' own.

Of layers whose gradients it does not know: exact, of operations that it knows, and
slower. Of layers with weights: outputs are split by example. DTensor would else take
hints from the gradients of split weights, and split channels.
"""

import functools
import math

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def stand_ins(encoder, mesh):
    """For `stateless_layers.calling`: of all such layers of an encoder.

    Args:
        encoder: built Keras model.
        mesh: `Mesh`.
    """
    inside = encoder._flatten_layers()
    weighted = layers.Conv2D, layers.DepthwiseConv2D, layers.Dense
    return [
        ([layer for layer in inside if isinstance(layer, kind)], call)
        for kind, call in (
            (layers.DepthwiseConv2D, _call_depthwise),
            (layers.AveragePooling2D, _call_average_pooling),
            (weighted, functools.partial(_call_by_example, mesh)),
        )
    ]


def _call_by_example(mesh, layer, own_call, inputs, *args, **kwargs):
    return mesh.split_examples(own_call(mesh.split_examples(inputs), *args, **kwargs))


def _call_depthwise(layer, own_call, inputs):
    if layer.depth_multiplier != 1 or layer.dilation_rate != (1, 1):
        raise ValueError(f"{layer.path} has a depth multiplier or dilation on a mesh")
    kernel = keras.ops.convert_to_tensor(layer.kernel)
    outputs = depthwise_conv(inputs, kernel, layer.strides[0], layer.padding)
    if layer.use_bias:
        outputs += layer.bias
    return layer.activation(outputs)


def depthwise_conv(inputs, kernel, stride, padding):
    """Depthwise convolution whose gradient is of its own forward pass, and of sums.

    Args:
        inputs: `[B, H, W, C]`.
        kernel: `[k, k, C, 1]`.
        stride: of both axes.
        padding: "same" or "valid".

    Returns:
        `[B, ..., ..., C]`.
    """
    size, strides = kernel.shape[0], [1, stride, stride, 1]
    pads = [_padding(side, size, stride, padding) for side in inputs.shape[1:3]]
    padded = tf.pad(inputs, [[0, 0], *pads, [0, 0]])

    @tf.custom_gradient
    def convolve(padded, kernel):
        outputs = tf.nn.depthwise_conv2d(padded, kernel, strides, "VALID")
        _, height, width, channels = outputs.shape

        def gradient(by_outputs):
            by_kernel = [
                tf.reduce_sum(window * by_outputs, [0, 1, 2])
                for window in _windows(padded, size, stride, height, width)
            ]
            by_kernel = tf.reshape(tf.stack(by_kernel), (size, size, channels, 1))
            # Each output goes to where it came from: a convolution of stride 1 of the
            # outputs, apart by the stride, with the kernel turned around.
            spread = _spread(by_outputs, stride)
            around = [
                [size - 1, side - spread_side]
                for side, spread_side in zip(
                    padded.shape[1:3], spread.shape[1:3], strict=True
                )
            ]
            spread = tf.pad(spread, [[0, 0], *around, [0, 0]])
            turned = kernel[::-1, ::-1]
            by_inputs = tf.nn.depthwise_conv2d(spread, turned, [1] * 4, "VALID")
            return by_inputs, by_kernel

        return outputs, gradient

    return convolve(padded, kernel)


def _windows(padded, size, stride, height, width):
    """What each entry of the kernel is multiplied with, in the order of the kernel."""
    for row in range(size):
        for column in range(size):
            yield padded[
                :,
                row : row + (height - 1) * stride + 1 : stride,
                column : column + (width - 1) * stride + 1 : stride,
            ]


def _spread(values, stride):
    """`[B, H, W, C]` with `stride - 1` zeros between neighbours of both axes."""
    _, height, width, channels = values.shape
    if stride == 1:
        return values
    apart = tf.reshape(values, (-1, height, 1, width, 1, channels))
    zeros = [0, stride - 1]
    apart = tf.pad(apart, [[0, 0], [0, 0], zeros, [0, 0], zeros, [0, 0]])
    spread = tf.reshape(apart, (-1, height * stride, width * stride, channels))
    return spread[:, : (height - 1) * stride + 1, : (width - 1) * stride + 1]


def _padding(side, size, stride, padding):
    """Zeros before and after an axis, as TensorFlow pads it."""
    if padding == "valid":
        return [0, 0]
    total = max((math.ceil(side / stride) - 1) * stride + size - side, 0)
    return [total // 2, total - total // 2]


def _call_average_pooling(layer, own_call, inputs):
    if layer.strides != layer.pool_size or len(set(layer.strides)) > 1:
        raise ValueError(f"{layer.path} pools windows that overlap, on a mesh")
    return average_pooling(inputs, layer.strides[0], layer.padding)


def average_pooling(inputs, size, padding):
    """Means of windows side by side, as `tf.nn.avg_pool2d` takes them.

    Args:
        inputs: `[B, H, W, C]`.
        size: of the windows, and their stride.
        padding: "same" or "valid".

    Returns:
        `[B, ..., ..., C]`; a mean is of the inputs in its window, not of padding.
    """
    sides = inputs.shape[1:3]
    if padding == "valid":
        sides = [side // size * size for side in sides]
        inputs = inputs[:, : sides[0], : sides[1]]
    pads = [_padding(side, size, size, padding) for side in sides]
    counts = np.pad(np.ones(sides, np.float32), pads)
    height, width = (side // size for side in counts.shape)
    counts = counts.reshape(height, size, width, size).sum((1, 3))
    windows = tf.pad(inputs, [[0, 0], *pads, [0, 0]])
    windows = tf.reshape(windows, (-1, height, size, width, size, inputs.shape[-1]))
    counts = tf.constant(counts[..., np.newaxis], inputs.dtype)
    return tf.reduce_sum(windows, [2, 4]) / counts
