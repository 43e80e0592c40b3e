"""TensorFlow's own operations give the values and the gradients."""

import numpy as np
import pytest
import tensorflow as tf

from basic_tf.training import dtensor_layers


def assert_equal(ours, theirs, *inputs):
    inputs = [tf.constant(value, tf.float32) for value in inputs]
    results = []
    for function in (ours, theirs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = function(*inputs)
            total = tf.reduce_sum(tf.sin(outputs))
        results.append([outputs, *tape.gradient(total, inputs)])
    for value, expected in zip(*results, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("height, width", [(6, 6), (7, 8), (5, 9)])
def test_a_depthwise_convolution(height, width, stride, padding):
    rng = np.random.default_rng(0)
    assert_equal(
        lambda x, w: dtensor_layers.depthwise_conv(x, w, stride, padding),
        lambda x, w: tf.nn.depthwise_conv2d(
            x, w, [1, stride, stride, 1], padding.upper()
        ),
        rng.normal(size=(2, height, width, 3)),
        rng.normal(size=(3, 3, 3, 1)),
    )


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("height, width", [(6, 4), (7, 5)])
def test_an_average_of_windows(height, width, padding):
    assert_equal(
        lambda x: dtensor_layers.average_pooling(x, 2, padding),
        lambda x: tf.nn.avg_pool2d(x, 2, 2, padding.upper()),
        np.random.default_rng(0).normal(size=(2, height, width, 3)),
    )
