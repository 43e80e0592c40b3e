"""A random affine transform of each image of a batch, a pure function of a seed."""

import math

import tensorflow as tf


def augment_affine(
    images, seed, max_rotation=0.0, max_shear=0.0, max_zoom=0.0, max_shift=0.0
):
    """Applies a random affine transform to each image of a batch.

    An image is zoomed, sheared and rotated about its centre, then shifted; bilinear,
    filled with the nearest border pixel. Draws are uniform between plus and minus the
    strength, except the zoom. Strength 0 leaves its part out.

    Args:
        images: float32 `[B, S, S, 3]`.
        seed: int `[2]`; the same seed gives the same result bit for bit.
        max_rotation: degrees.
        max_shear: horizontal displacement per unit of height.
        max_zoom: scale of each axis, log-uniform between its inverse and 1 + max_zoom.
        max_shift: fraction of the side, drawn for each axis.

    Returns:
        float32 `[B, S, S, 3]`.

    Raises:
        ValueError: when a strength is negative.
    """
    strengths = [max_rotation, max_shear, max_zoom, max_shift]
    if min(strengths) < 0:
        raise ValueError(f"rotation, shear, zoom, shift must not be < 0: {strengths}")
    batch_size, side = tf.shape(images)[0], tf.shape(images)[1]
    # Philox by name: the default algorithm depends on the device.
    draws = tf.random.stateless_uniform([batch_size, 6], seed, -1.0, 1.0, alg="philox")
    angle, shear = draws[:, 0] * math.radians(max_rotation), draws[:, 1] * max_shear
    zoom = tf.exp(draws[:, 2:4] * math.log1p(max_zoom))
    center = tf.cast(side - 1, tf.float32) / 2
    target = center + draws[:, 4:] * max_shift * tf.cast(side, tf.float32)
    # The op wants the inverse: for each pixel of the result its place in the source.
    cosine, sine = tf.cos(angle), tf.sin(angle)
    entries = [cosine - shear * sine, -sine - shear * cosine, sine, cosine]
    matrix = tf.reshape(tf.stack(entries, axis=1), [-1, 2, 2]) / zoom[:, :, tf.newaxis]
    offset = center - tf.reduce_sum(matrix * target[:, tf.newaxis], axis=2)
    rows = tf.concat([matrix, offset[:, :, tf.newaxis]], axis=2)
    augmented = tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.pad(tf.reshape(rows, [-1, 6]), [[0, 0], [0, 2]]),
        output_shape=tf.stack([side, side]),
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )
    return tf.ensure_shape(augmented, images.shape)
