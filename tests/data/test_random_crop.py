"""PIL resizes the same boxes; a loop draws them one try after another."""

import functools
import math

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from PIL import Image

from basic_tf.data import random_crop
from tests.data.image_files import noise


@functools.cache
def drawer(**ranges):
    """A function from sides and numbers to a box a number."""

    @tf.function
    def draw(sides, numbers):
        return tf.map_fn(
            lambda number: random_crop.random_box(sides, [7, number], **ranges), numbers
        )

    return draw


def boxes(sides, count, **ranges):
    """Boxes of as many seeds, `[count, 4]`."""
    return drawer(**ranges)(tf.constant(sides), tf.range(count)).numpy()


def test_shapes_of_boxes_are_uniform_in_their_ranges():
    area, aspect_ratio = (0.08, 0.5), (3 / 4, 4 / 3)  # always fits a square
    top, left, height, width = boxes(
        (2000, 2000), 2000, area=area, aspect_ratio=aspect_ratio
    ).T
    shares = height * width / 2000**2
    assert area[0] - 1e-3 < shares.min() and shares.max() < area[1] + 1e-3
    ratios = width / height
    assert ratios.min() > 3 / 4 - 2e-3 and ratios.max() < 4 / 3 + 2e-3
    for values, (low, high) in (
        (shares, area),
        (np.log(ratios), np.log(aspect_ratio)),
        (top / (2000 - height), (0, 1)),
        (left / (2000 - width), (0, 1)),
    ):
        # Of 2000 uniform draws, once in 10,000 tries below.
        assert scipy.stats.kstest(values, "uniform", (low, high - low)).pvalue > 1e-4
    assert abs(np.corrcoef(shares, ratios)[0, 1]) < 0.1  # 4.5 standard deviations
    assert abs(np.corrcoef(top, left)[0, 1]) < 0.2  # both follow the box's size


SIDES = [(480, 640), (37, 100), (300, 1), (1, 300), (2, 2), (1, 1), (100, 1000)]


def drawn_box(height, width, area, draws):
    """One try after another, with all that is random given."""
    for share, shape, y, x in draws:
        pixels = height * width * (area[0] + share * (area[1] - area[0]))
        ratio = math.exp(math.log(3 / 4) + shape * math.log(16 / 9))
        h, w = round(math.sqrt(pixels / ratio)), round(math.sqrt(pixels * ratio))
        if 0 < h <= height and 0 < w <= width:
            return [int(y * (height - h + 1)), int(x * (width - w + 1)), h, w]
    h, w = min(height, width / (3 / 4)), min(width, height * 4 / 3)
    h, w = max(1, round(h)), max(1, round(w))
    _, _, y, x = draws[0]
    return [int(y * (height - h + 1)), int(x * (width - w + 1)), h, w]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("area", [(0.5, 1.0), (0.08, 1.0)])
def test_a_box_is_the_first_try_that_fits(sides, area):
    for number, box in enumerate(boxes(sides, 20, area=area)):
        draws = tf.random.stateless_uniform([10, 4], [7, number], alg="philox")
        assert box.tolist() == drawn_box(*sides, area, np.float64(draws).tolist())


def test_a_part_of_a_panorama_has_its_whole_height_and_a_random_place():
    top, left, height, width = boxes((100, 2000), 200).T
    assert set(height) == {100} and set(width) == {133} and set(top) == {0}
    assert left.min() < 100 and left.max() > 1767 and len(set(left)) > 150


@pytest.mark.parametrize("sides", SIDES)
def test_pixels_agree_with_pil(sides):
    array = noise(*sides, 3)
    for number in range(5):
        seed = [1, number]
        actual = random_crop.resized_crop(np.float32(array) / 255, seed, 32)
        assert actual.shape == (32, 32, 3)
        top, left, height, width = random_crop.random_box(sides, seed).numpy()
        corners = (left, top, left + width, top + height)
        channels = [
            Image.fromarray(np.float32(array[..., channel]) / 255)
            .crop(corners)
            .resize((32, 32), Image.Resampling.BICUBIC)
            for channel in range(3)
        ]
        expected = np.clip(np.stack(channels, axis=-1), 0, 1)
        # The weights are sums and quotients in float32.
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5)


def test_the_seed_decides_the_result_bit_for_bit():
    image = np.float32(noise(40, 50, 3)) / 255
    compiled = tf.function(random_crop.resized_crop)
    first = random_crop.resized_crop(image, [3, 4], 16)
    np.testing.assert_array_equal(first, compiled(image, tf.constant([3, 4]), 16))
    other = random_crop.resized_crop(image, [3, 5], 16)
    assert np.abs(first - other).mean() > 0.05


@pytest.mark.parametrize(
    "options,message",
    [
        ({"area": (0.0, 1.0)}, r"area \(0.0, 1.0\) must be two .* more than 0 and at"),
        ({"area": (0.5, 1.1)}, r"area \(0.5, 1.1\) must be .* at most 1$"),
        ({"area": [0.9, 0.5]}, r"area \(0.9, 0.5\) must be two numbers in order"),
        ({"aspect_ratio": (1.0, math.inf)}, r"aspect_ratio \(1.0, inf\) must .* 0$"),
    ],
)
def test_ranges_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        random_crop.random_box((4, 4), (0, 0), **options)


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.5, 1.0])
def test_as_many_images_are_flipped_as_the_probability_says(probability):
    images = np.random.default_rng(0).random((2000, 2, 3, 3), dtype=np.float32)
    flipped = np.asarray(random_crop.flip(images, [1, 2], probability))
    is_flipped = (flipped == images[:, :, ::-1]).all(axis=(1, 2, 3))
    np.testing.assert_array_equal(flipped[~is_flipped], images[~is_flipped])
    assert abs(is_flipped.mean() - probability) < 0.05  # 4.5 standard deviations
    if probability in (0, 1):
        assert is_flipped.mean() == probability


def test_no_probability_is_refused():
    with pytest.raises(ValueError, match=r"probability 1.5 must be between 0 and 1"):
        random_crop.flip(np.zeros([1, 2, 2, 3]), (0, 0), 1.5)
