"""CoAtNet as a whole: a stem against its equation, batch norm, bad stages."""

import numpy as np
import pytest

from basic_tf.models import coatnet
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


def test_an_unknown_block_is_refused():
    with pytest.raises(ValueError, match="unknown block 'conv'; known: mbconv, transf"):
        coatnet.CoAtNet((1, 1), (4, 8), (2, 2), ("conv",), 8)
