"""SimCLR's projection head against its equation in float64 NumPy."""

import numpy as np
import pytest

from basic_tf.models import projection_head
from tests.models import numpy_layers
from tests.models.model_test_case import ModelTestCase


class TestProjectionHead(ModelTestCase):
    arguments = (np.random.default_rng(0).normal(size=(6, 8)).astype("float32"),)
    output_shapes = ((6, 3),)
    mixed_error = 0.05  # few values, of which batch norm makes small differences large

    def make(self):
        return projection_head.ProjectionHead(output_dim=3)


def numpy_head(head, x):
    """`W2 relu(norm(W1 h))`, normalised, and so on (SimCLR section 4.2)."""
    members = iter(head.layers.layers)
    for index in range(head.num_layers):
        (kernel,) = numpy_layers.weights(next(members))
        is_last = index == head.num_layers - 1
        gamma, *offset, mean, variance = numpy_layers.weights(next(members))
        assert len(offset) == (0 if is_last else 1)
        x = (x @ kernel - mean) / np.sqrt(variance + 1e-5) * gamma + sum(offset)
        if not is_last:
            x = numpy_layers.relu(x)
            next(members)
    return x


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_head_follows_its_equation(num_layers):
    head = projection_head.ProjectionHead(num_layers, output_dim=3)
    numpy_layers.assert_agrees(head, numpy_head, (5, 8))


@pytest.mark.parametrize("hidden_dim, widths", [(None, (8, 8, 3)), (5, (5, 5, 3))])
def test_hidden_layers_are_as_wide_as_the_input_unless_told(hidden_dim, widths):
    head = projection_head.ProjectionHead(3, output_dim=3, hidden_dim=hidden_dim)
    head.build((None, 8))
    kernels = [weight for weight in head.get_weights() if weight.ndim == 2]
    assert tuple(kernel.shape[1] for kernel in kernels) == widths


@pytest.mark.parametrize("num_layers", [0, 4])
def test_another_number_of_layers_is_refused(num_layers):
    with pytest.raises(ValueError, match=f"num_layers {num_layers} is not 1, 2 or 3"):
        projection_head.ProjectionHead(num_layers)
