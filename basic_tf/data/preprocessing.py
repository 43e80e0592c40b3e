"""From the bytes of an image file to the model's input, in TensorFlow ops only.

The same graph runs eagerly, in `tf.data` and in an exported SavedModel, so that a
served model sees the pixels it was trained on (where `batches.keep_pixels` holds them,
rounded to 8 bits). Neither Keras nor PIL is needed.
"""

import tensorflow as tf

from basic_tf.data import decoding


def resize_and_crop(image, image_size):
    """Resizes the shorter side to `image_size` and crops the centre, as peers evaluate.

    Antialiased bicubic, with the sizes and offsets of torchvision's `Resize` and
    `CenterCrop`; only the pixels of the crop are computed, so that 1 x 300 costs no
    more than a square. An image that has the size already passes through untouched.

    Args:
        image: float32 `[H, W, 3]` in [0, 1], H and W at least 1.
        image_size: int, the side S of the result.

    Returns:
        float32 `[S, S, 3]` in [0, 1].
    """

    def resize():
        sides = tf.cast(tf.shape(image)[:2], tf.int64)
        resized = image_size * sides // tf.reduce_min(sides)
        # Half to even, as Python's round in torchvision's center_crop.
        offset = tf.round(tf.cast(resized - image_size, tf.float64) / 2)
        pixels = tf.raw_ops.ScaleAndTranslate(
            images=image[tf.newaxis],
            size=[image_size, image_size],
            scale=tf.cast(resized / sides, tf.float32),
            translation=tf.cast(-offset, tf.float32),
            kernel_type="keyscubic",  # the bicubic of tf.image.resize
            antialias=True,
        )
        return tf.clip_by_value(pixels[0], 0.0, 1.0)

    fits = tf.reduce_all(tf.shape(image)[:2] == image_size)
    image = tf.cond(fits, lambda: tf.identity(image), resize)
    return tf.ensure_shape(image, [image_size, image_size, 3])


def load_image(image_bytes, image_size):
    """Decodes, resizes and crops: string `[]` to float32 `[S, S, 3]`, a static shape.

    Peers resize palette images by the nearest pixel, before these are RGB; here they
    are resized as all others.

    Raises as `decoding.decode_image`.
    """
    return resize_and_crop(decoding.decode_image(image_bytes), image_size)
