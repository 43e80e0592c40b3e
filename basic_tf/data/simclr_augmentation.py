"""SimCLR's augmentation (Chen et al. 2020, section 3 and appendix A): two views.

A view is a random crop, flipped, with jittered colours or none, and blurred. The code
that its authors published differs in these:

| | here, as the paper says it | published code |
|---|---|---|
| crop | area uniform, aspect ratio log-uniform | height uniform, ratio uniform |
| resize | bicubic, antialiased as in evaluation | bicubic, not antialiased |
| brightness | a factor, as in the second version | the first version adds |
| blur at the border | mean of the pixels that there are | zeros beyond, a dark frame |
"""

import functools

import tensorflow as tf

from basic_tf.data import random_crop

AREA = (0.08, 1.0)
FLIPPED, JITTERED, GRAY, BLURRED = 0.5, 0.8, 0.2, 0.5  # probabilities
SIGMA = (0.1, 2.0)  # of the blur, in pixels
MAX_STRENGTH = 2.5  # of the colours, which turns hues by half a circle


def two_views(images, seed, image_size, strength=1.0):
    """Two views of each image.

    Args:
        images: float32 `[B, H, W, 3]` in [0, 1].
        seed: int `[2]`; the same seed gives the same result bit for bit, and an image's
            views depend on its place in the batch.
        image_size: int, side S of the views.
        strength: s of the colours; 1 on ImageNet, 0.5 on CIFAR.

    Returns:
        Two of float32 `[B, S, S, 3]` in [0, 1].

    Raises:
        ValueError: for a strength outside 0 and 2.5.
    """
    # Philox by name: the default algorithm depends on the device.
    seeds = tf.random.stateless_uniform(
        [tf.shape(images)[0], 2, 2], seed,
        minval=None, maxval=None, dtype=tf.int64, alg="philox",
    )  # fmt: skip

    def views(image_and_seeds):
        image, seeds = image_and_seeds
        return tuple(
            random_view(image, seeds[view], image_size, strength) for view in range(2)
        )

    spec = tf.TensorSpec([image_size, image_size, 3], tf.float32)
    return tf.map_fn(views, (images, seeds), fn_output_signature=(spec, spec))


def random_view(image, seed, image_size, strength=1.0):
    """One view of one image, `[H, W, 3]` to `[S, S, 3]`; see `two_views`."""
    crop_seed, distortion_seed = tf.unstack(tf.random.split(seed, alg="philox"))
    view = random_crop.resized_crop(image, crop_seed, image_size, AREA)
    return distort(view, **draw_distortion(distortion_seed, strength))


def draw_distortion(seed, strength=1.0):
    """The arguments of `distort`, besides the image.

    Args:
        seed: int `[2]`.
        strength: as of `two_views`.

    Raises:
        ValueError: as `two_views`.
    """
    if not 0 <= strength <= MAX_STRENGTH:
        raise ValueError(f"strength {strength} must be between 0 and {MAX_STRENGTH}")
    draws = tf.random.stateless_uniform([13], seed, alg="philox")

    def factor(draw):
        low, high = max(0.0, 1 - 0.8 * strength), 1 + 0.8 * strength
        return low + draw * (high - low)

    return {
        "is_flipped": draws[0] < FLIPPED,
        "is_jittered": draws[1] < JITTERED,
        "is_gray": draws[2] < GRAY,
        "is_blurred": draws[3] < BLURRED,
        "brightness": factor(draws[4]),
        "contrast": factor(draws[5]),
        "saturation": factor(draws[6]),
        "hue": 0.2 * strength * (2 * draws[7] - 1),
        "order": tf.argsort(draws[8:12]),
        "sigma": SIGMA[0] + draws[12] * (SIGMA[1] - SIGMA[0]),
    }


def distort(
    image,
    is_flipped,
    is_jittered,
    is_gray,
    is_blurred,
    brightness,
    contrast,
    saturation,
    hue,
    order,
    sigma,
):
    """Changes an image.

    Args:
        image: float32 `[S, S, 3]` in [0, 1].
        is_flipped, is_jittered, is_gray, is_blurred: bool, what is done, in this order.
        brightness, contrast, saturation, hue, order: as of `jitter`.
        sigma: as of `blur`.

    Returns:
        As `image`.
    """
    colors = {"brightness": brightness, "contrast": contrast, "order": order}
    colors |= {"saturation": saturation, "hue": hue}
    for is_done, change in (
        (is_flipped, lambda image: tf.reverse(image, [1])),
        (is_jittered, lambda image: jitter(image, **colors)),
        (is_gray, to_gray),
        (is_blurred, lambda image: blur(image, sigma)),
    ):
        unchanged = functools.partial(tf.identity, image)
        image = tf.cond(is_done, functools.partial(change, image), unchanged)
    return image


def jitter(image, brightness, contrast, saturation, hue, order):
    """Changes the colours, clipped to [0, 1] after each change.

    Args:
        image: float32 `[S, S, 3]` in [0, 1].
        brightness: factor.
        contrast: factor of what a channel differs from its mean.
        saturation: factor of the saturation (HSV).
        hue: added to the hue, in circles.
        order: int `[4]`, a permutation of these four.
    """
    changes = [
        lambda image: image * brightness,
        lambda image: tf.image.adjust_contrast(image, contrast),
        lambda image: tf.image.adjust_saturation(image, saturation),
        lambda image: tf.image.adjust_hue(image, hue),
    ]
    for index in range(len(changes)):
        branches = [functools.partial(change, image) for change in changes]
        image = tf.clip_by_value(tf.switch_case(order[index], branches), 0.0, 1.0)
    return image


def to_gray(image):
    """The luma of Rec. 601 in all three channels."""
    return tf.repeat(tf.image.rgb_to_grayscale(image), 3, axis=-1)


def blur(image, sigma):
    """Gaussian blur, with a kernel of 10 % of the side that has a middle.

    Args:
        image: float32 `[S, S, 3]`.
        sigma: standard deviation in pixels.
    """
    side = image.shape[0]
    pixels = tf.range(side, dtype=tf.float32)
    distance = tf.abs(pixels - pixels[:, tf.newaxis])
    inside = tf.cast(distance <= side // 10 // 2, tf.float32)
    kernel = inside * tf.exp(-tf.square(distance / sigma) / 2)
    kernel /= tf.reduce_sum(kernel, axis=1, keepdims=True)
    # Two products of matrices, which take less time than depthwise convolutions.
    for _ in range(2):  # along the height, turned, along the width, turned back
        rows = tf.matmul(kernel, tf.reshape(image, [side, 3 * side]))
        image = tf.transpose(tf.reshape(rows, [side, side, 3]), [1, 0, 2])
    return image
