"""Naive float64 reference for the parts around the blocks; peers' weights elsewhere."""

import numpy as np
import pytest

from basic_tf.models import vision_transformer
from tests.models import numpy_layers
from tests.models.model_test_case import ModelTestCase, random_images, randomize_weights

TINY = {
    "patch_size": 4,
    "num_layers": 2,
    "width": 16,
    "num_heads": 2,
    "embedding_dim": 6,
    "image_size": 8,
}
IMAGES = random_images(2, 8, 8, 3)


class TestVisionTransformer(ModelTestCase):
    arguments = (IMAGES,)
    output_shapes = ((2, 6),)

    def make(self):
        return vision_transformer.VisionTransformer(**TINY)


class TestVisionTransformerWithOptions(ModelTestCase):
    arguments = (IMAGES,)
    output_shapes = ((2, 6),)

    def make(self):
        return vision_transformer.VisionTransformer(
            **TINY,
            mlp_ratio=2.7,
            activation="quick_gelu",
            mean=(0.5, 0.4, 0.3),
            std=(0.2, 0.3, 0.4),
        )


def test_no_layers_leave_the_normed_class_token():
    encoder = vision_transformer.VisionTransformer(**TINY | {"num_layers": 0})
    encoder.build(None)
    randomize_weights(encoder)
    token = encoder.class_embedding.numpy() + encoder.position_embedding.numpy()[0]
    x = numpy_layers.layer_norm(encoder.pre_norm, token.astype("float64"))
    x = numpy_layers.layer_norm(encoder.norm, x)
    expected = x @ encoder.projection.get_weights()[0]
    actual = encoder(IMAGES)
    np.testing.assert_allclose(actual, [expected] * 2, rtol=1e-4, atol=1e-6)


def test_patches_are_read_row_by_row_without_a_bias():
    """With the identity in place of the blocks, token 1 + 2 y + x is patch (y, x)."""
    encoder = vision_transformer.VisionTransformer(**TINY)
    encoder.build(None)
    randomize_weights(encoder)
    (kernel,) = encoder.patch_embedding.get_weights()
    pixels = (IMAGES - np.array(encoder.mean)) / np.array(encoder.std)
    patches = pixels.reshape(2, 2, 4, 2, 4, 3).transpose(0, 1, 3, 2, 4, 5)
    patches = patches.reshape(2, 4, 48) @ kernel.reshape(48, 16)
    patches += encoder.position_embedding.numpy()[1:]
    expected = numpy_layers.layer_norm(encoder.pre_norm, patches)
    seen = []

    class Recorder:
        def __call__(self, x, bias):
            seen.append(x.numpy())
            return x

    encoder.blocks[:] = [Recorder()]
    encoder(IMAGES)
    np.testing.assert_allclose(seen[0][:, 1:], expected, rtol=1e-4, atol=1e-5)


def test_a_patch_that_does_not_divide_the_image_is_refused():
    with pytest.raises(ValueError, match="patch_size 3 does not divide image_size 8"):
        vision_transformer.VisionTransformer(**TINY | {"patch_size": 3})


def test_images_of_another_size_are_refused():
    with pytest.raises(ValueError, match="images of 16 x 16 pixels; this encoder"):
        TestVisionTransformer().make()(random_images(2, 16, 16, 3))
