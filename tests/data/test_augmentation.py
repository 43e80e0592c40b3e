import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import affine, augmentation, random_crop

AFFINE = {"max_rotation": 20.0, "max_shift": 0.1}
STEP = tf.constant(5, tf.int64)


@pytest.mark.parametrize(
    "options,message",
    [
        ({"corp": {}}, "augmentation 'corp' is none of crop, flip, affine$"),
        (
            {"max_zoom": 0.1},
            "augmentation 'max_zoom' is none of crop, flip, affine; it is an option of "
            "affine",
        ),
        (
            {"crop": {"aera": (0.5, 1.0)}},
            "augmentation crop has no option 'aera'; it has area, aspect_ratio$",
        ),
        (
            {"affine": {"seed": 3}},
            "augmentation affine has no option 'seed'; it has max_rotation, max_shear",
        ),
        ({"flip": True}, "augmentation flip is True and must be a dictionary, of prob"),
        ({"crop": {"area": (0.5, 2.0)}}, r"augmentation crop: area \(0.5, 2.0\) must"),
        ({"crop": {"area": 0.5}}, "augmentation crop: .*float"),
        ({"affine": {"max_shear": -1.0}}, "augmentation affine: .* must not be < 0"),
        ({"flip": {"probability": 2.0}}, "augmentation flip: probability 2.0 must be"),
    ],
)
def test_what_is_no_augmentation_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        augmentation.check(options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"crop": {}, "flip": {}, "affine": {}},
        {"affine": AFFINE, "crop": {"area": [0.1, 1.0]}, "flip": {"probability": 1.0}},
    ],
)
def test_what_is_one_passes(options):
    augmentation.check(options)


def test_a_batch_is_flipped_and_then_transformed():
    images = np.random.default_rng(0).random((3, 8, 8, 3), dtype=np.float32)
    options = {"affine": AFFINE, "flip": {"probability": 1.0}, "crop": {}}
    actual = augmentation.of_batch(images, 2, STEP, options)
    expected = affine.augment_affine(images[:, :, ::-1], (2, 5), **AFFINE)
    np.testing.assert_array_equal(actual, expected)


def test_a_crop_has_its_options_and_draws_of_its_own():
    image = np.random.default_rng(0).random((9, 8, 3), dtype=np.float32)
    options = {"crop": {"area": (0.3, 0.4)}, "flip": {"probability": 1.0}}
    actual = augmentation.of_image(image, 2, STEP, 4, options)
    expected = random_crop.resized_crop(image, (2 + (3 << 32), 5), 4, (0.3, 0.4))
    np.testing.assert_array_equal(actual, expected)
