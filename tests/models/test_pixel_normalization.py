import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.models import pixel_normalization
from tests.models.model_test_case import random_images


def test_each_channel_loses_its_mean_and_deviation():
    images = random_images(2, 4, 4, 3)
    mean, std = (0.5, 0.25, 0.0), (1.0, 0.5, 2.0)
    actual = pixel_normalization.normalize_pixels(images, 4, mean, std, "float32")
    expected = (images.astype("float64") - mean) / np.array(std)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(2, 8, 8, 3), (2, 4, 8, 3)])
def test_images_of_another_size_are_refused(shape):
    message = f"images of {shape[1]} x 8 pixels; this encoder takes 4 x 4"
    with pytest.raises(ValueError, match=message):
        pixel_normalization.normalize_pixels(
            random_images(*shape), 4, (0.0,) * 3, (1.0,) * 3, "float32"
        )


@pytest.mark.parametrize("side", [4, 8])
def test_a_size_that_is_not_known_yet_is_checked_when_the_graph_runs(side):
    symbol = keras.Input((None, None, 3))
    outputs = pixel_normalization.normalize_pixels(
        symbol, 4, (0.0,) * 3, (1.0,) * 3, "float32"
    )
    assert outputs.shape == (None, 4, 4, 3)
    model = keras.Model(symbol, outputs)
    images = random_images(2, side, side, 3)
    if side == 4:
        np.testing.assert_array_equal(model(images), images)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="8"):
            model(images)
