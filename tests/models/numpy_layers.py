"""The layers that CoAtNet's blocks are made of, in float64 NumPy."""

import numpy as np
import scipy.special

from tests.models.model_test_case import randomize_weights


def weights(layer, dtype="float64"):
    return [weight.astype(dtype) for weight in layer.get_weights()]


def gelu(x):
    return x * (1 + scipy.special.erf(x / np.sqrt(2))) / 2


def relu(x):
    return np.maximum(x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"gelu": gelu, "relu": relu}


def batch_norm(layer, x):
    gamma, beta, mean, variance = weights(layer)
    return (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta


def layer_norm(layer, x):
    gamma, beta = weights(layer)
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def windows(x, size, strides, fill):
    """`[B, H, W, C]` -> `[B, H', W', size, size, C]`, padded as TensorFlow's SAME."""
    padding = [(0, 0)]
    for side in x.shape[1:3]:
        total = max((-(-side // strides) - 1) * strides + size - side, 0)
        padding.append((total // 2, total - total // 2))
    x = np.pad(x, [*padding, (0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    return np.moveaxis(view[:, ::strides, ::strides], 3, -1)


def max_pool(x, strides):
    return x if strides == 1 else windows(x, strides, strides, -np.inf).max((3, 4))


def shortcut(block, x):
    x = max_pool(x, block.strides)
    if x.shape[-1] == block.filters:
        return x
    kernel, bias = weights(block.project)
    return x @ kernel[0, 0] + bias


def assert_agrees(layer, reference, shape):
    inputs = np.random.default_rng(5).normal(size=shape).astype("float32")
    layer.build((None, *shape[1:]))
    randomize_weights(layer)
    expected = reference(layer, inputs.astype("float64"))
    # Float32 sums of a few hundred terms.
    np.testing.assert_allclose(
        layer(inputs), expected, rtol=1e-4, atol=2e-6 * np.abs(expected).max()
    )
