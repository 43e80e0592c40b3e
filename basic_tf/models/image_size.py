"""A CoAtNet's weights at another image size."""

import math

import keras

from basic_tf.models.coatnet import CoAtNet


def at_image_size(encoder, image_size):
    """A copy of a CoAtNet for images of another size.

    All weights are those of `encoder`; its tables of relative positions are resized
    (CoAtNet A.1), which is all that depends on the size.

    Args:
        encoder: a built `CoAtNet`.
        image_size: side of the images in pixels; a multiple of the total stride.

    Returns:
        A built `CoAtNet`.

    Raises:
        ValueError: for a size that the strides do not divide.

    Example:
        >>> encoder = CoAtNet((1, 1), (4, 8), (2, 2), ("transformer",), 8,
        ...                   image_size=16, head_dim=4)
        >>> encoder.build((None, 16, 16, 3))
        >>> at_image_size(encoder, 24)(keras.ops.ones((2, 24, 24, 3))).shape
        TensorShape([2, 8])
    """
    stride = math.prod(encoder.strides)
    if image_size < stride or image_size % stride:
        below = image_size // stride * stride
        nearest = [size for size in (below, below + stride) if size]
        raise ValueError(
            f"image_size {image_size} is not a multiple of the total stride {stride}; "
            f"use {' or '.join(map(str, nearest))}"
        )
    copy = CoAtNet.from_config(encoder.get_config() | {"image_size": image_size})
    copy.build((None, image_size, image_size, 3))
    copy_weights(encoder, copy)
    return copy


def copy_weights(source, target):
    """Gives a model the weights of one that differs in its CoAtNet's image size alone.

    Args:
        source: a built `CoAtNet`, or a model that has one.
        target: a built model of the same kind.
    """
    for variable, given in zip(target.variables, source.variables, strict=True):
        value = given.value
        if variable.shape != given.shape:
            value = resize_table(value, variable.shape[1:])
        variable.assign(value)


def resize_table(table, shape):
    """Resizes relative-position tables bilinearly, the centre staying the centre.

    Args:
        table: `[heads, 2H - 1, 2W - 1]`.
        shape: `(2H' - 1, 2W' - 1)`.

    Returns:
        `[heads, 2H' - 1, 2W' - 1]`: entry `i` of an axis is read at
        `(i + 1/2) (2H - 1) / (2H' - 1) - 1/2`, within the table.
    """
    return keras.ops.image.resize(
        keras.ops.expand_dims(table, -1), tuple(shape), interpolation="bilinear"
    )[..., 0]
