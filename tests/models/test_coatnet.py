"""CoAtNet as a whole: a stem against its equation, batch norm, bad stages."""

import re

import numpy as np
import pytest

from basic_tf.models import coatnet, timm_configurations
from tests.models import numpy_layers
from tests.models.model_test_case import (
    ModelTestCase,
    random_images,
    randomize_weights,
)

TINY = {
    "depths": (2, 1, 2),
    "widths": (4, 8, 12),
    "strides": (2, 2, 2),
    "blocks": ("mbconv", "transformer"),
    "embedding_dim": 12,
    "image_size": 16,
    "head_dim": 4,
}


TIMMS = timm_configurations.DEFINITION | {
    "depths": (2, 1, 1, 2, 1),
    "widths": (4, 4, 8, 16, 16),
    "blocks": ("mbconv", "mbconv", "transformer", "transformer"),
    "embedding_dim": None,
    "image_size": 64,
    "head_dim": 8,
    "head": ("norm", "mean"),
}


class TestCoAtNet(ModelTestCase):
    arguments = (random_images(3, 16, 16, 3),)
    output_shapes = ((3, 12),)

    def make(self):
        return coatnet.CoAtNet(**TINY)


def test_a_stem_and_a_head_alone_follow_their_equations():
    encoder = coatnet.CoAtNet((2,), (4,), (2,), (), embedding_dim=5, image_size=6)
    images = random_images(2, 6, 6, 3)
    encoder(images)
    randomize_weights(encoder)
    first, norm, _, second = encoder.stages[0].layers
    x = 2 * images.astype("float64") - 1
    for layer, strides in ((first, 2), (second, 1)):
        kernel, bias = numpy_layers.weights(layer)
        x = np.tensordot(numpy_layers.windows(x, 3, strides, 0), kernel, 3) + bias
        if layer is first:
            x = numpy_layers.gelu(numpy_layers.batch_norm(norm, x))
    _, norm, projection = encoder.head.layers
    kernel, bias = numpy_layers.weights(projection)
    expected = numpy_layers.layer_norm(norm, x.mean((1, 2))) @ kernel + bias
    np.testing.assert_allclose(encoder(images), expected, rtol=1e-4, atol=1e-5)


class TestTimmsCoAtNet(ModelTestCase):
    arguments = (random_images(3, 64, 64, 3),)
    output_shapes = ((3, 16),)

    def make(self):
        return coatnet.CoAtNet(**TIMMS)


@pytest.mark.parametrize("head", [("norm", "mean"), ("mean", "norm", "tanh")])
def test_what_stands_before_the_projection_is_in_the_order_that_is_named(head):
    arguments = (2,), (4,), (2,), ()
    encoder = coatnet.CoAtNet(*arguments, 5, 6, head=head, projection_bias=False)
    encoder.build((None, 6, 6, 3))
    randomize_weights(encoder)
    inputs = np.random.default_rng(3).normal(size=(2, 3, 3, 4))
    parts = dict(zip(head, encoder.head.layers, strict=False))
    functions = {
        "mean": lambda x: x.mean((1, 2)),
        "norm": lambda x: numpy_layers.layer_norm(parts["norm"], x),
        "tanh": lambda x: np.tanh(affine(parts["tanh"], x)),
    }
    x = inputs
    for kind in head:
        x = functions[kind](x)
    (kernel,) = numpy_layers.weights(encoder.head.layers[-1])
    expected = x @ kernel
    np.testing.assert_allclose(encoder.head(inputs), expected, rtol=1e-4, atol=1e-5)


def affine(layer, x):
    kernel, bias = numpy_layers.weights(layer)
    return x @ kernel + bias


def test_without_an_embedding_dim_it_ends_before_the_projection():
    whole = coatnet.CoAtNet(**TINY)
    features = coatnet.CoAtNet(**TINY | {"embedding_dim": None})
    images = random_images(2, 16, 16, 3)
    whole.build(images.shape)
    features.build(images.shape)
    randomize_weights(whole)
    *_, kernel, bias = whole.get_weights()
    for variable, source in zip(features.variables, whole.variables, strict=False):
        variable.assign(source)
    assert features.embedding_dim == 12
    expected = features(images) @ kernel + bias
    np.testing.assert_allclose(whole(images), expected, rtol=1e-4, atol=1e-5)


def test_mean_and_deviation_are_taken_off_first():
    plain = coatnet.CoAtNet(**TINY)
    other = coatnet.CoAtNet(**TINY, mean=(0.1, 0.2, 0.3), std=(0.5, 1, 0.25))
    images = random_images(2, 16, 16, 3)
    plain.build(images.shape)
    other.build(images.shape)
    other.set_weights(plain.get_weights())
    normalized = (images - np.float32([0.1, 0.2, 0.3])) / np.float32([0.5, 1, 0.25])
    np.testing.assert_allclose(
        other(images), plain((normalized + 1) / 2), rtol=1e-3, atol=1e-5
    )


def test_an_embedding_does_not_depend_on_the_rest_of_the_batch():
    encoder = coatnet.CoAtNet(**TINY)
    images = random_images(4, 16, 16, 3)
    together = encoder(images)
    alone = np.concatenate([encoder(images[i : i + 1]) for i in range(4)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-6)


def test_every_batch_norm_learns_in_training_alone():
    encoder = coatnet.CoAtNet(**TINY)
    images = random_images(4, 16, 16, 3)
    encoder(images)
    moving = [v for v in encoder.variables if "moving" in v.path]
    start = [v.numpy() for v in moving]
    assert moving
    encoder(images)
    for before, variable in zip(start, moving, strict=True):
        np.testing.assert_array_equal(variable, before)
    encoder(images, training=True)
    for before, variable in zip(start, moving, strict=True):
        assert np.any(variable.numpy() != before), variable.path


def test_every_mbconv_takes_the_bases_of_its_ratios():
    bases = {"expansion_base": "output", "squeeze_base": "output"}
    encoder = coatnet.CoAtNet(**TINY | bases)
    encoder.build((None, 16, 16, 3))
    block = {layer.name: layer for layer in encoder.stages[1].block.layers}
    assert (block["expand"].filters, block["se"].squeeze_filters) == (4 * 8, 8 // 4)


def test_every_variable_has_a_path_of_its_own():
    encoder = coatnet.CoAtNet(**TINY)
    encoder.build((None, 16, 16, 3))
    paths = [variable.path for variable in encoder.variables]
    assert len(set(paths)) == len(paths)


def test_stages_of_different_number_are_refused():
    with pytest.raises(ValueError, match=r"blocks one a stage.*\(2, 2\)"):
        coatnet.CoAtNet((1, 1, 1), (4, 8, 8), (2, 2), ("mbconv", "mbconv"), 8)


@pytest.mark.parametrize("head", [("norm",), ("mean", "max")])
def test_a_head_without_mean_or_of_another_layer_is_refused(head):
    with pytest.raises(ValueError, match=re.escape(f"head {head} is not of norm, t")):
        coatnet.CoAtNet(**TINY, head=head)


def test_images_of_another_size_are_refused():
    encoder = coatnet.CoAtNet(**TINY)
    with pytest.raises(ValueError, match="of 20 x 20 pixels; this encoder takes 16 x"):
        encoder(random_images(1, 20, 20, 3))


def test_an_unknown_block_is_refused():
    with pytest.raises(ValueError, match="unknown block 'conv'; known: mbconv, transf"):
        coatnet.CoAtNet((1, 1), (4, 8), (2, 2), ("conv",), 8)
