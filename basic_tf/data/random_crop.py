"""A random part of an image, resized, and a random flip: how photographs are augmented.

Pure functions of a seed.
"""

import math

import tensorflow as tf

AREA, ASPECT_RATIO = (0.5, 1.0), (3 / 4, 4 / 3)
_TRIES = 10


def resized_crop(image, seed, image_size, area=AREA, aspect_ratio=ASPECT_RATIO):
    """Resizes a random part of an image, antialiased bicubic as in evaluation.

    Args:
        image: float32 `[H, W, 3]` in [0, 1].
        seed: int `[2]`; the same seed gives the same result bit for bit.
        image_size: int, the side S of the result.
        area, aspect_ratio: as of `random_box`.

    Returns:
        float32 `[S, S, 3]` in [0, 1].

    Raises:
        ValueError: as `random_box`.
    """
    box = random_box(tf.shape(image)[:2], seed, area, aspect_ratio)
    top, left, height, width = tf.unstack(box)
    part = image[top : top + height, left : left + width]
    resized = tf.image.resize(part, [image_size] * 2, "bicubic", antialias=True)
    return tf.ensure_shape(
        tf.clip_by_value(resized, 0.0, 1.0), [image_size, image_size, 3]
    )


def random_box(sides, seed, area=AREA, aspect_ratio=ASPECT_RATIO):
    """Draws a box inside an image.

    Its area is uniform and its aspect ratio log-uniform, as in torchvision's
    `RandomResizedCrop`; a box that does not fit is drawn again. Where none of ten does,
    as in a panorama, it is the largest of an aspect ratio in the range, and has a
    random place (in torchvision, the middle).

    Args:
        sides: int `[2]`, height and width of the image, at least 1.
        seed: int `[2]`.
        area: least and greatest share of the image's area.
        aspect_ratio: least and greatest width over height.

    Returns:
        int32 `[4]`: top, left, height and width, at least 1.

    Raises:
        ValueError: for a range that is none or, of the area, not within 0 and 1.
    """
    _check_range("area", area, 1)
    _check_range("aspect_ratio", aspect_ratio, math.inf)
    sides = tf.cast(sides, tf.float32)
    # Philox by name: the default algorithm depends on the device.
    draws = tf.random.stateless_uniform([_TRIES, 4], seed, alg="philox")
    pixels = tf.reduce_prod(sides) * _between(draws[:, 0], *area)
    ratios = tf.exp(_between(draws[:, 1], *map(math.log, aspect_ratio)))
    sizes = tf.round(tf.sqrt(tf.stack([pixels / ratios, pixels * ratios], axis=1)))
    fits = tf.reduce_all((sizes >= 1) & (sizes <= sides), axis=1)
    first = tf.argmax(tf.cast(fits, tf.int32))  # the first try where there is none
    ratio = tf.clip_by_value(sides[1] / sides[0], *aspect_ratio)
    largest = tf.minimum(sides, tf.stack([sides[1] / ratio, sides[0] * ratio]))
    size = tf.where(fits[first], sizes[first], tf.maximum(tf.round(largest), 1.0))
    start = tf.floor(draws[first, 2:] * (sides - size + 1.0))
    return tf.cast(tf.concat([start, size], axis=0), tf.int32)


def flip(images, seed, probability=0.5):
    """Swaps left and right in some images of a batch.

    Args:
        images: `[B, H, W, 3]`.
        seed: int `[2]`.
        probability: of an image to be flipped.

    Returns:
        As `images`.

    Raises:
        ValueError: for a probability outside 0 and 1.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"probability {probability} must be between 0 and 1")
    if not probability:
        return images
    shape = [tf.shape(images)[0], 1, 1, 1]
    draws = tf.random.stateless_uniform(shape, seed, alg="philox")
    return tf.where(draws < probability, tf.reverse(images, [2]), images)


def _between(draws, low, high):
    return low + draws * (high - low)


def _check_range(name, values, limit):
    low, high = values
    if not 0 < low <= high <= limit or math.isinf(high):
        most = "" if math.isinf(limit) else f" and at most {limit}"
        raise ValueError(
            f"{name} {tuple(values)} must be two numbers in order, more than 0{most}"
        )
