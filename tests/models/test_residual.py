"""The shortcut of CoAtNet's blocks against NumPy."""

import numpy as np
import pytest

from basic_tf.models import residual
from tests.models import numpy_layers


class Shortcut(residual.ResidualBlock):
    """The shortcut alone."""

    def build(self, input_shape):
        self.build_shortcut(input_shape)

    def call(self, inputs):
        return self.shortcut(inputs)


@pytest.mark.parametrize("filters,strides", [(6, 1), (8, 1), (6, 2), (8, 2)])
@pytest.mark.parametrize("height,width", [(4, 6), (5, 3), (1, 2)])
def test_the_shortcut_pools_and_projects(filters, strides, height, width):
    block = Shortcut(filters, strides)
    numpy_layers.assert_agrees(block, numpy_layers.shortcut, (2, height, width, 6))
    shape = block.compute_output_shape((2, height, width, 6))
    assert shape == block(np.zeros((2, height, width, 6), "float32")).shape


def test_the_pooling_may_be_the_average():
    block = Shortcut(6, 2, "average")
    inputs = np.random.default_rng(0).normal(size=(2, 4, 8, 6)).astype("float32")
    expected = inputs.reshape(2, 2, 2, 4, 2, 6).mean((2, 4))
    np.testing.assert_allclose(block(inputs), expected, rtol=1e-5, atol=1e-6)


def test_another_pooling_is_refused():
    with pytest.raises(ValueError, match="pooling 'sum' is not max or average"):
        Shortcut(6, 2, "sum")


def test_equal_width_without_stride_is_the_identity():
    block = Shortcut(6, 1)
    inputs = np.random.default_rng(0).normal(size=(1, 2, 3, 6)).astype("float32")
    np.testing.assert_array_equal(block(inputs), inputs)
    assert block.weights == []


def test_unknown_sides_stay_unknown():
    shape = Shortcut(6, 2).compute_output_shape((None, None, 5, 3))
    assert shape == (None, None, 3, 6)
