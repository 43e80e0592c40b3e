"""SimCLR's residual networks: blocks and stems against their equations."""

import numpy as np
import pytest

from basic_tf.models import resnet
from tests.models import numpy_layers
from tests.models.model_test_case import (
    ModelTestCase,
    random_images,
    randomize_weights,
)


class TestResNetBlock(ModelTestCase):
    arguments = (random_images(2, 6, 5, 4),)
    output_shapes = ((2, 3, 3, 8),)

    def make(self):
        return resnet.ResNetBlock(filters=2, strides=2)


class TestResNet(ModelTestCase):
    arguments = (random_images(3, 16, 16, 3),)
    output_shapes = ((3, 8),)

    def make(self):
        return resnet.ResNet((1, 2), width=4, bottleneck=False, image_size=16)


def test_an_output_of_another_width_is_linear_in_the_mean_over_positions():
    images = random_images(2, 16, 16, 3)
    encoder = resnet.ResNet((1,), width=4, bottleneck=False, embedding_dim=5)
    outputs = encoder(images).numpy()
    kernel, bias = encoder.projection.get_weights()
    encoder.projection = None
    np.testing.assert_allclose(outputs, encoder(images) @ kernel + bias, atol=1e-6)


def convolve(layer, x):
    """In float64, padded by the same on all sides."""
    (kernel,) = numpy_layers.weights(layer)
    size, strides = kernel.shape[0], layer.strides[0]
    padding = (size // 2, size // 2)
    x = np.pad(x, [(0, 0), padding, padding, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    windows = windows[:, ::strides, ::strides]
    return np.einsum("bhwcij,ijco->bhwo", windows, kernel)


def normalize(layer, x):
    gamma, beta, mean, variance = numpy_layers.weights(layer)
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def numpy_block(block, inputs):
    """He et al. 2016, eq. 2, with ReLU after the sum."""
    parts = {layer.name: layer for layer in block.residual.layers}
    convolutions = 3 if block.bottleneck else 2
    x = inputs
    for index in range(convolutions):
        x = normalize(parts[f"norm{index}"], convolve(parts[f"conv{index}"], x))
        if index < convolutions - 1:
            x = numpy_layers.relu(x)
    if block.project:
        *_, convolution, norm = block.shortcut.layers
        inputs = normalize(norm, convolve(convolution, inputs))
    return numpy_layers.relu(x + inputs)


@pytest.mark.parametrize("bottleneck", [False, True])
@pytest.mark.parametrize("strides, project", [(1, False), (1, True), (2, True)])
def test_a_block_follows_its_equation(bottleneck, strides, project):
    filters = 2 if bottleneck else 8
    block = resnet.ResNetBlock(filters, strides, bottleneck, project)
    numpy_layers.assert_agrees(block, numpy_block, (2, 6, 5, 8))


def test_the_middle_convolution_of_a_bottleneck_takes_the_stride():
    block = resnet.ResNetBlock(2, strides=2)
    block.build((None, 6, 6, 4))
    parts = {layer.name: layer for layer in block.residual.layers}
    strides = [parts[f"conv{index}"].strides[0] for index in range(3)]
    assert strides == [1, 2, 1]


def test_a_fresh_block_is_the_identity_on_what_relu_gives():
    images = random_images(2, 4, 4, 8)
    block = resnet.ResNetBlock(2, project=False)
    np.testing.assert_array_equal(block(images), images)


@pytest.mark.parametrize("filters, strides", [(4, 1), (2, 2)])
def test_an_identity_that_changes_the_shape_is_refused(filters, strides):
    message = f"from width 8 to {4 * filters} with strides {strides} needs project=True"
    with pytest.raises(ValueError, match=message):
        resnet.ResNetBlock(filters, strides, project=False).build((None, 4, 4, 8))


@pytest.mark.parametrize("stem, side", [("imagenet", 4), ("cifar", 16)])
def test_the_stem_of_imagenet_quarters_the_sides_that_of_cifar_keeps_them(stem, side):
    encoder = resnet.ResNet((1,), width=4, stem=stem)
    stages = encoder.stages[0](random_images(1, 16, 16, 3))
    assert stages.shape == (1, side, side, 4)


def test_the_stem_of_imagenet_follows_its_equation():
    stem = resnet.ResNet((1,), width=4).stages[0]
    images = random_images(2, 12, 10, 3)
    stem(images)
    randomize_weights(stem)
    parts = {layer.name: layer for layer in stem.layers}
    x = normalize(parts["norm"], convolve(parts["conv"], images.astype("float64")))
    expected = numpy_layers.windows(numpy_layers.relu(x), 3, 2, -np.inf).max((3, 4))
    np.testing.assert_allclose(stem(images), expected, rtol=1e-4, atol=1e-5)


def test_the_output_is_the_mean_over_the_last_stages_positions():
    encoder = resnet.ResNet((1, 1), width=2, stem="cifar")
    images = x = random_images(2, 8, 6, 3)
    outputs = encoder(images)
    for stage in encoder.stages:
        x = stage(x)
    assert encoder.embedding_dim == 16 and x.shape == (2, 4, 3, 16)
    expected = np.mean(np.float64(x), axis=(1, 2))
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-7)


def test_every_variable_has_a_path_of_its_own():
    encoder = resnet.ResNet((2, 1), width=4)
    encoder.build((None, 16, 16, 3))
    paths = [variable.path for variable in encoder.variables]
    assert len(set(paths)) == len(paths)


def test_an_unknown_stem_is_refused():
    with pytest.raises(ValueError, match="unknown stem 'patch'; known: imagenet, ci"):
        resnet.ResNet((1,), stem="patch")
