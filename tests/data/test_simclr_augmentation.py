"""The standard library's colour spaces and plain NumPy make the same changes."""

import colorsys
import itertools

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from basic_tf.data import simclr_augmentation

IMAGE = np.random.default_rng(0).random((6, 6, 3), dtype=np.float32)
COUNT = 4000


def many_draws(strength):
    """The arguments of `distort` of many seeds, by name."""

    @tf.function
    def draw(numbers):
        def of_number(number):
            return simclr_augmentation.draw_distortion([3, number], strength)

        spec = tf.nest.map_structure(
            lambda value: tf.TensorSpec(value.shape, value.dtype), of_number(0)
        )
        return tf.map_fn(of_number, numbers, fn_output_signature=spec)

    return {name: value.numpy() for name, value in draw(tf.range(COUNT)).items()}


@pytest.fixture(scope="module")
def draws():
    return many_draws(0.5)


@pytest.mark.parametrize(
    "name,probability",
    [("is_flipped", 0.5), ("is_jittered", 0.8), ("is_gray", 0.2), ("is_blurred", 0.5)],
)
def test_changes_are_made_with_their_probability(draws, name, probability):
    # Passed once in 10,000 tries.
    result = scipy.stats.binomtest(int(draws[name].sum()), COUNT, probability)
    assert result.pvalue > 1e-4


@pytest.mark.parametrize(
    "name,low,high",
    [
        *(("brightness", 0.6, 1.4), ("contrast", 0.6, 1.4), ("saturation", 0.6, 1.4)),
        *(("hue", -0.1, 0.1), ("sigma", 0.1, 2.0)),
    ],
)
def test_strengths_are_uniform_in_their_ranges(draws, name, low, high):
    assert low <= draws[name].min() and draws[name].max() <= high
    test = scipy.stats.kstest(draws[name], "uniform", (low, high - low))
    assert test.pvalue > 1e-4


def test_every_order_of_the_colours_is_as_likely(draws):
    orders = list(itertools.permutations(range(4)))
    counts = [np.sum((draws["order"] == order).all(axis=1)) for order in orders]
    assert sum(counts) == COUNT
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_draws_have_nothing_to_do_with_each_other(draws):
    columns = [np.float64(value) for value in draws.values() if value.ndim == 1]
    correlations = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlations).max() < 0.07  # 4.5 standard deviations


def test_a_full_strength_takes_colours_away_and_never_turns_them_negative():
    strong = many_draws(2.5)
    for name in ("brightness", "contrast", "saturation"):
        assert 0 <= strong[name].min() < 0.01 and 2.99 < strong[name].max() <= 3
    assert 0.49 < np.abs(strong["hue"]).max() <= 0.5


def numpy_jitter(image, brightness, contrast, saturation, hue, order):
    def in_hsv(image, change):
        pixels = image.reshape(-1, 3)
        hsv = [change(*colorsys.rgb_to_hsv(*pixel)) for pixel in pixels]
        return np.reshape([colorsys.hsv_to_rgb(*pixel) for pixel in hsv], image.shape)

    def adjust_contrast(image):
        mean = image.mean(axis=(0, 1))
        return mean + contrast * (image - mean)

    changes = [
        lambda image: image * brightness,
        adjust_contrast,
        lambda image: in_hsv(image, lambda h, s, v: (h, min(1, s * saturation), v)),
        lambda image: in_hsv(image, lambda h, s, v: ((h + hue) % 1, s, v)),
    ]
    for index in order:
        image = np.clip(changes[index](image), 0, 1)
    return image


STRENGTHS = {"brightness": 1.3, "contrast": 0.5, "saturation": 1.6, "hue": -0.17}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("name", [*STRENGTHS, None])
def test_jitter_is_that_of_numpy_in_every_order(name, order):
    neutral = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0}
    strengths = neutral | {name: STRENGTHS[name]} if name else STRENGTHS
    actual = simclr_augmentation.jitter(IMAGE, **strengths, order=tf.constant(order))
    expected = numpy_jitter(np.float64(IMAGE), **strengths, order=order)
    np.testing.assert_allclose(actual, expected, atol=2e-6)
    assert np.abs(expected - IMAGE).mean() > 0.02


def test_gray_is_luma_in_three_channels():
    luma = IMAGE @ [0.299, 0.587, 0.114]
    expected = np.stack([luma] * 3, axis=-1)
    # TensorFlow's weights have four digits.
    np.testing.assert_allclose(simclr_augmentation.to_gray(IMAGE), expected, atol=2e-4)


@pytest.mark.parametrize("side,radius", [(10, 0), (20, 1), (39, 1), (64, 3)])
@pytest.mark.parametrize("sigma", [0.1, 0.8, 2.0])
def test_blur_is_the_weighted_mean_of_the_window(side, radius, sigma):
    image = np.random.default_rng(0).random((side, side, 3), dtype=np.float32)
    actual = simclr_augmentation.blur(tf.constant(image), sigma)
    for y, x in [(0, 0), (0, side // 2), (side // 2, side // 3), (side - 1, side - 2)]:
        rows = np.arange(max(0, y - radius), min(side, y + radius + 1))
        columns = np.arange(max(0, x - radius), min(side, x + radius + 1))
        distances = (rows[:, None] - y) ** 2 + (columns - x) ** 2
        weights = np.exp(-distances / (2 * sigma**2))
        window = image[rows[:, None], columns]
        expected = np.sum(window * weights[..., None], axis=(0, 1)) / weights.sum()
        np.testing.assert_allclose(actual[y, x], expected, atol=1e-6)


def distorted(**changes):
    nothing = dict.fromkeys(
        ("is_flipped", "is_jittered", "is_gray", "is_blurred"), tf.constant(False)
    )
    strengths = STRENGTHS | {"order": tf.range(4), "sigma": 1.0}
    image = np.random.default_rng(0).random((20, 20, 3), dtype=np.float32)
    changes = {name: tf.constant(True) for name in changes}
    return image, simclr_augmentation.distort(image, **nothing | strengths | changes)


def test_nothing_is_changed_where_nothing_is_drawn():
    image, actual = distorted()
    np.testing.assert_array_equal(actual, image)


def test_changes_come_in_the_order_of_the_paper():
    image, actual = distorted(is_flipped=1, is_jittered=1, is_gray=1, is_blurred=1)
    expected = simclr_augmentation.jitter(
        image[:, ::-1], **STRENGTHS, order=tf.range(4)
    )
    expected = simclr_augmentation.blur(simclr_augmentation.to_gray(expected), 1.0)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    image, actual = distorted(is_flipped=1)
    np.testing.assert_array_equal(actual, image[:, ::-1])


def test_examples_views_and_steps_draw_differently_and_equal_seeds_equally():
    batch = np.stack([np.random.default_rng(0).random((20, 24, 3), np.float32)] * 3)
    seeds = np.array([[1, 0], [1, 1], [2, 0], [1, 0]])  # and steps, as a run has them
    dataset = tf.data.Dataset.from_tensor_slices(seeds).map(
        lambda seed: simclr_augmentation.two_views(batch, seed, 16),
        num_parallel_calls=2,
    )
    assert [spec.shape for spec in dataset.element_spec] == 2 * [(3, 16, 16, 3)]
    views = np.stack([np.stack(pair) for pair in dataset])
    assert views.shape == (4, 2, 3, 16, 16, 3) and views.dtype == np.float32
    assert views.min() >= 0 and views.max() <= 1
    np.testing.assert_array_equal(views[3], views[0])
    flat = views[:3].reshape(18, -1)
    differences = np.abs(flat[:, None] - flat).mean(axis=-1)
    assert (differences + np.eye(18) > 0.01).all()


def test_a_view_is_a_distorted_crop_of_the_papers_area(monkeypatch):
    seen = []

    def crop(image, seed, image_size, area):
        seen.append((image_size, area))
        return tf.ones([image_size, image_size, 3])

    monkeypatch.setattr(simclr_augmentation.random_crop, "resized_crop", crop)
    simclr_augmentation.random_view(tf.zeros([9, 9, 3]), [0, 0], 4)
    assert seen == [(4, (0.08, 1.0))]


@pytest.mark.parametrize("strength", [-0.1, 2.6])
def test_another_strength_is_refused(strength):
    with pytest.raises(ValueError, match=f"strength {strength} must be between 0 and"):
        simclr_augmentation.two_views(tf.zeros([1, 4, 4, 3]), [0, 0], 4, strength)
