"""Its equation in float64 NumPy, and closed forms."""

import numpy as np
import pytest

from basic_tf.models.feed_forward import feed_forward
from tests.models import numpy_layers


@pytest.mark.parametrize("activation", ["gelu", "relu"])
@pytest.mark.parametrize("shape", [(3, 6), (2, 5, 6), (2, 3, 4, 6)])
def test_norm_expansion_activation_and_projection_follow_in_this_order(
    shape, activation
):
    def reference(layer, x):
        norm, expand, project = layer.layers
        kernel, bias = numpy_layers.weights(expand)
        assert kernel.shape == (6, 18)
        hidden = numpy_layers.layer_norm(norm, x) @ kernel + bias
        kernel, bias = numpy_layers.weights(project)
        return numpy_layers.ACTIVATIONS[activation](hidden) @ kernel + bias

    numpy_layers.assert_agrees(feed_forward(6, 3, activation), reference, shape)


@pytest.mark.parametrize("options, epsilon", [({}, 1e-5), ({"epsilon": 1e-6}, 1e-6)])
def test_epsilon_bounds_what_small_differences_become(options, epsilon):
    """Of `(a, -a)` the norm makes `a / sqrt(a^2 + e)`: half for `3 a^2 = e`."""
    layer = feed_forward(2, 1, "linear", **options)
    layer.build((None, 2))
    for dense in layer.layers[1:]:
        dense.set_weights([np.eye(2), np.zeros(2)])
    inputs = np.sqrt(epsilon / 3) * np.array([[1, -1]])
    np.testing.assert_allclose(layer(inputs), [[0.5, -0.5]], rtol=1e-5)
