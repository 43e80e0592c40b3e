"""A CoAtNet at another image size: its tables against a naive bilinear resize."""

import numpy as np
import pytest

from basic_tf.models import coatnet, image_size
from tests.models.model_test_case import random_images, randomize_weights


def small_encoder(side=16):
    encoder = coatnet.CoAtNet(
        depths=(1, 1, 1),
        widths=(4, 8, 8),
        strides=(2, 2, 1),
        blocks=("mbconv", "transformer"),
        embedding_dim=6,
        image_size=side,
        head_dim=4,
    )
    encoder.build((None, side, side, 3))
    randomize_weights(encoder)
    return encoder


def naive_bilinear(table, shape):
    """One entry at a time, in float64; beyond the border the border is repeated."""

    def neighbours(index, new, old):
        place = np.clip((index + 0.5) * old / new - 0.5, 0, old - 1)
        low = min(int(place), max(old - 2, 0))
        return [(low, 1 - (place - low)), (min(low + 1, old - 1), place - low)]

    resized = np.zeros((len(table), *shape))
    for row, column in np.ndindex(*shape):
        for y, of_y in neighbours(row, shape[0], table.shape[1]):
            for x, of_x in neighbours(column, shape[1], table.shape[2]):
                resized[:, row, column] += of_y * of_x * table[:, y, x]
    return resized


@pytest.mark.parametrize("side", [4, 8, 12, 16, 36])
def test_tables_are_resized_bilinearly_and_all_else_is_kept(side):
    encoder = small_encoder()
    copy = image_size.at_image_size(encoder, side)
    assert copy.image_size == side
    for variable, source in zip(copy.variables, encoder.variables, strict=True):
        expected = source.numpy()
        if "relative_bias" in source.path:
            expected = naive_bilinear(expected, (2 * (side // 4) - 1,) * 2)
        np.testing.assert_allclose(variable, expected, rtol=1e-5, atol=1e-6)


def test_an_offset_of_nothing_keeps_its_bias():
    table = np.random.default_rng(0).normal(size=(2, 7, 5)).astype("float32")
    resized = image_size.resize_table(table, (13, 9))
    np.testing.assert_allclose(resized[:, 6, 4], table[:, 3, 2], atol=1e-6)


def test_the_same_size_gives_the_same_embeddings():
    encoder = small_encoder()
    images = random_images(2, 16, 16, 3)
    copy = image_size.at_image_size(encoder, 16)
    np.testing.assert_array_equal(copy(images), encoder(images))


def test_the_encoder_itself_is_left_alone():
    encoder = small_encoder()
    before = encoder.get_weights()
    image_size.at_image_size(encoder, 24)
    for weight, kept in zip(encoder.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, kept)
    assert encoder.image_size == 16


@pytest.mark.parametrize("side, sizes", [(18, "16 or 20"), (2, "4"), (0, "4")])
def test_a_size_that_the_strides_do_not_divide_is_refused(side, sizes):
    message = f"image_size {side} is not a multiple of the total stride 4; use {sizes}$"
    with pytest.raises(ValueError, match=message):
        image_size.at_image_size(small_encoder(), side)
