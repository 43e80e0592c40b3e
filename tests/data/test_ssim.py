"""Structural similarity against scikit-image, window by window in float64."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from skimage import metrics

from basic_tf.data import ssim


def published(image, other):
    return metrics.structural_similarity(
        image,
        other,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        data_range=1,
    )


def pairs(size, seed=0):
    """Unrelated, shifted, noisy, flat, nearly flat and opposite images."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(size=(4, size, size))
    smooth = np.cumsum(np.cumsum(noise, axis=1), axis=2)
    smooth /= smooth.max()
    steps = (smooth > 0.3).astype(float)
    images = np.concatenate([noise, smooth, steps, np.full((4, size, size), 0.97)])
    others = np.roll(images, 1, axis=2) * 0.9 + rng.normal(
        scale=0.01, size=images.shape
    )
    others[::4] = 1 - images[::4]
    others[1::4] = np.roll(images, 5, axis=0)[1::4]
    return images, np.clip(others, 0, 1)


@pytest.mark.parametrize("size", [11, 32, 47])
def test_it_is_the_published_one(size):
    images, others = pairs(size)
    expected = [published(*pair) for pair in zip(images, others, strict=True)]
    actual = ssim.structural_similarity(images, others)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)
    assert min(expected) < 0 and max(expected) > 0.9


def test_known_moments_give_the_same():
    images, others = pairs(32)
    np.testing.assert_array_equal(
        ssim.structural_similarity(
            images, others, ssim.window_moments(images), ssim.window_moments(others)
        ),
        ssim.structural_similarity(images, others),
    )


def test_single_precision_would_not_do():
    """Why this is not `tf.image.ssim`."""
    images, others = pairs(32)
    single = tf.image.ssim(images[..., None], others[..., None], max_val=1.0)
    assert np.abs(single - ssim.structural_similarity(images, others)).max() > 1e-5


@given(st.integers(0, 2**32 - 1))
def test_it_is_symmetric_and_at_most_one(seed):
    images, others = pairs(16, seed)
    forth = ssim.structural_similarity(images, others)
    back = ssim.structural_similarity(others, images)
    np.testing.assert_allclose(forth, back, rtol=0, atol=1e-14)
    assert np.all(forth <= 1)
    same = ssim.structural_similarity(images, images)
    np.testing.assert_allclose(same, 1, rtol=0, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_similarities_are_inner_products(seed):
    """The search for candidates rests on it: no eigenvalue of theirs is below 0."""
    images = np.concatenate(pairs(16, seed))
    rows, columns = np.indices((len(images), len(images))).reshape(2, -1)
    similarities = ssim.structural_similarity(images[rows], images[columns])
    matrix = similarities.reshape(len(images), len(images))
    assert np.linalg.eigvalsh(matrix).min() > -1e-9


def test_gray_is_the_luma_of_tensorflow():
    images = np.random.default_rng(0).uniform(size=(2, 4, 4, 3)).astype(np.float32)
    expected = tf.image.rgb_to_grayscale(images)[..., 0]
    np.testing.assert_allclose(ssim.to_gray(images), expected, atol=2e-4)


@pytest.mark.parametrize(
    ("shape", "other"), [((2, 8, 8), (2, 8, 8)), ((1, 32, 32), (2, 32, 32))]
)
def test_other_shapes_are_refused(shape, other):
    message = f"images of shapes {shape} and {other}: both must be the same [B, S, S]"
    with pytest.raises(ValueError, match=re.escape(message)):
        ssim.structural_similarity(np.zeros(shape), np.zeros(other))
