"""Images of coordinates show each transform; scipy applies the same ones."""

import numpy as np
import pytest
import scipy.ndimage
import tensorflow as tf

from basic_tf.data import affine


def coordinates(batch_size, side):
    """Images whose channels are the pixel's own x, y and 1."""
    y, x = np.mgrid[:side, :side].astype("float32")
    return np.stack(batch_size * [np.stack([x, y, np.ones_like(x)], axis=-1)])


def measured_transforms(side=32, batch_size=200, seed=(1, 2), **strengths):
    """Each image's map from result to source, `[B, 2, 3]`, about the centre.

    Images of coordinates show where a pixel came from, if not from beyond the border.
    """
    images = coordinates(batch_size, side)
    sources = affine.augment_affine(images, seed, **strengths).numpy()[..., :2]
    center = (side - 1) / 2
    transforms = []
    for source in sources:
        inside = np.all((source > 0.01) & (source < side - 1.01), axis=-1)
        design = images[0][inside] - [center, center, 0]
        solution = np.linalg.lstsq(design, source[inside] - center)
        transforms.append(solution[0].T)
    return np.stack(transforms)


def test_strength_zero_returns_the_images():
    images = np.random.default_rng(0).random((3, 17, 17, 3), dtype=np.float32)
    actual = affine.augment_affine(images, [3, 4])
    np.testing.assert_allclose(actual, images, rtol=0, atol=1e-6)


STRONG = {"max_rotation": 40, "max_shear": 0.3, "max_zoom": 0.5, "max_shift": 0.2}


def test_the_seed_decides_the_result_bit_for_bit():
    images = np.random.default_rng(0).random((3, 17, 17, 3), dtype=np.float32)
    compiled = tf.function(affine.augment_affine)
    first = affine.augment_affine(images, [3, 4], **STRONG)
    again = compiled(images, tf.constant([3, 4]), **STRONG)
    other = affine.augment_affine(images, [3, 5], **STRONG)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).mean() > 0.05


def test_each_image_has_its_own_transform():
    transforms = measured_transforms(batch_size=50, **STRONG)
    assert len(np.unique(transforms[:, 0, 0])) == 50


def test_rotation_turns_about_the_centre_up_to_its_limit():
    transforms = measured_transforms(max_rotation=30)
    matrix, offset = transforms[..., :2], transforms[..., 2]
    np.testing.assert_allclose(np.linalg.det(matrix), 1, atol=1e-4)
    identity = np.broadcast_to(np.eye(2), matrix.shape)
    np.testing.assert_allclose(matrix @ matrix.transpose(0, 2, 1), identity, atol=1e-4)
    np.testing.assert_allclose(offset, 0, atol=1e-3)
    angles = np.degrees(np.arctan2(matrix[:, 1, 0], matrix[:, 0, 0]))
    assert -30 <= angles.min() < -28 and 28 < angles.max() <= 30


def test_shear_moves_rows_up_to_its_limit():
    transforms = measured_transforms(max_shear=0.3)
    expected = np.tile(np.eye(2, 3), (200, 1, 1))
    expected[:, 0, 1] = shear = transforms[:, 0, 1]
    np.testing.assert_allclose(transforms, expected, atol=1e-3)
    assert -0.3 <= shear.min() < -0.28 and 0.28 < shear.max() <= 0.3


def test_zoom_is_log_uniform_on_each_axis():
    transforms = measured_transforms(max_zoom=0.5)
    zoom = 1 / transforms[:, [0, 1], [0, 1]]
    expected = np.zeros([200, 2, 3])
    expected[:, [0, 1], [0, 1]] = 1 / zoom
    np.testing.assert_allclose(transforms, expected, atol=1e-3)
    assert 1 / 1.501 < zoom.min() < 0.69 and 1.45 < zoom.max() < 1.501
    assert abs(np.log(zoom).mean()) < 0.04  # of a standard error of 0.012
    assert abs(np.corrcoef(zoom.T)[0, 1]) < 0.25


def test_shift_moves_each_axis_up_to_its_fraction_of_the_side():
    transforms = measured_transforms(max_shift=0.25)
    matrix, offset = transforms[..., :2], transforms[..., 2]
    np.testing.assert_allclose(matrix, np.tile(np.eye(2), (200, 1, 1)), atol=1e-3)
    limit = 0.25 * 32 + 1e-3
    assert -limit < offset.min() < -7.7 and 7.7 < offset.max() < limit
    assert abs(np.corrcoef(offset.T)[0, 1]) < 0.25


def test_pixels_and_borders_agree_with_scipy():
    images = np.random.default_rng(0).random((8, 32, 32, 3), dtype=np.float32)
    seed = (5, 6)
    actual = affine.augment_affine(images, seed, **STRONG)
    transforms = measured_transforms(batch_size=8, seed=seed, **STRONG)
    for image, transform, result in zip(images, transforms, actual, strict=True):
        matrix = np.eye(3)  # scipy's axes are y, x, channel
        matrix[:2, :2] = transform[::-1, 1::-1]
        center = np.array([15.5, 15.5, 0])
        offset = center + [*transform[::-1, 2], 0] - matrix @ center
        expected = scipy.ndimage.affine_transform(
            image, matrix, offset, order=1, mode="nearest"
        )
        # The map is known to about 1e-5 pixels, as far as it can be measured.
        np.testing.assert_allclose(result, expected, atol=1e-3)


def test_a_negative_strength_is_refused():
    with pytest.raises(ValueError, match=r"must not be < 0: \[0.0, -0.1, 0.0, 0.0\]"):
        affine.augment_affine(np.zeros([1, 8, 8, 3]), [0, 0], max_shear=-0.1)
