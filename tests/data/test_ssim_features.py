"""The parts of an inner product that estimates structural similarity."""

import math

import numpy as np
import pytest

from basic_tf.data import ssim, ssim_features
from tests.data import drawn_images

IMAGES = drawn_images.draw_glyphs(60, 5)


def test_coordinates_of_a_window_are_orthonormal():
    weights = ssim_features._polynomials()
    gram = weights / ssim.gaussian_window() @ weights.T
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(weights[0], ssim.gaussian_window(), atol=1e-15)


@pytest.mark.parametrize("period", [6.0, 8.0])
def test_cosine_series_are_close_to_the_hyperbolic_secant(period):
    """Exactly 1 between equal values, and not below it: candidates are not lost."""
    values = np.linspace(-1, 1, 21)[:, np.newaxis, np.newaxis]
    series = ssim_features._cosine_series(values, period)[..., 0, 0]
    differences = values[:, 0] - values[:, 0].T
    actual = series @ series.T
    np.testing.assert_allclose(np.diag(actual), 1)
    assert np.all(actual >= 1 / np.cosh(differences) - 1e-12)
    assert np.all(actual <= 1 / np.cosh(differences) + 0.3)


def test_features_are_at_most_of_length_one():
    noise = np.random.default_rng(0).uniform(size=IMAGES.shape).astype(np.float32)
    flat = np.full_like(IMAGES[:1], 0.5)
    for images in (IMAGES, noise, flat):
        lengths = np.linalg.norm(ssim_features.window_features(images), axis=1)
        assert lengths.max() <= 1 + 1e-5
    assert lengths == pytest.approx(1, abs=1e-4)  # nothing of a flat image is lost


def test_blocks_hold_each_window_once():
    maps = np.arange(2 * 3 * 7 * 7).reshape(2, 3, 7, 7)
    blocks = ssim_features._blocks(maps)
    assert blocks.shape == (2, 9, 3, 4)
    np.testing.assert_array_equal(blocks[0, 4, 1], maps[0, 1, 2:4, 2:4].ravel())
    np.testing.assert_array_equal(
        np.sort(blocks.ravel()), np.sort(maps[..., :6, :6].ravel())
    )


def test_a_projection_keeps_inner_products_with_its_images():
    features = ssim_features.window_features(IMAGES)
    projected = ssim_features.Projection(IMAGES)(IMAGES)[:, :-1]
    np.testing.assert_allclose(
        projected @ projected.T, features @ features.T, atol=1e-3
    )


def test_projected_images_have_length_one():
    projection = ssim_features.Projection(IMAGES, dim=8)
    others = drawn_images.draw_glyphs(300, 6, held_out=True)  # more than one chunk
    projected = projection(others)
    assert projected.shape == (300, 9)
    np.testing.assert_allclose(np.linalg.norm(projected, axis=1), 1, atol=1e-5)


def test_copies_among_the_images_are_no_directions():
    same = np.repeat(IMAGES[:3], 5, axis=0)
    assert ssim_features.Projection(same).directions.shape[1] == 3


def test_directions_are_taken_from_images_spread_over_all():
    many = np.concatenate([np.repeat(IMAGES[:1], 30, axis=0), IMAGES[1:31]])
    assert ssim_features.Projection(many, max_images=20).directions.shape[1] == 11


def test_the_largest_shares_come_first():
    directions = ssim_features.Projection(IMAGES).directions
    shares = np.square(ssim_features.window_features(IMAGES) @ directions).sum(axis=0)
    assert np.all(np.diff(shares) < 1e-3) and math.isclose(
        shares.sum(),
        np.square(ssim_features.window_features(IMAGES)).sum(),
        rel_tol=1e-3,
    )
