"""Every image is decoded once before it is trained on, so that none fails later."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl import logging

from basic_tf.data import batches, decoding
from basic_tf.data.example_table import BadExample

MAX_PIXEL_BYTES = 2**30
_REASONS = {
    tf.errors.NotFoundError: "missing image",
    tf.errors.PermissionDeniedError: "unreadable image",
    tf.errors.FailedPreconditionError: "unreadable image",  # a folder
}


def check_images(examples, image_size=None):
    """Drops the examples whose images cannot be read and decoded.

    The order of training must not depend on when an image turns out to be broken: a
    batch is a function of its step and of the examples that there are. So all are tried
    beforehand, which takes as long as the input of an epoch.

    Args:
        examples: `Examples`.
        image_size: if all images fit into `MAX_PIXEL_BYTES` as 8-bit pixels of this
            size they are kept: decoding a small image costs about as much as a tenth of
            its training step, and a set that trains for several epochs should pay that
            once. None to keep none.

    Returns:
        `Examples`; `bad` names those that were dropped, too.
    """
    count = len(examples)
    if image_size and count * image_size**2 * 3 <= MAX_PIXEL_BYTES:
        pixels = np.empty((count, image_size, image_size, 3), np.uint8)
        usable = np.zeros(count, bool)
        for rows, images in _try(batches.image_loader(examples, image_size), count):
            usable[rows] = True
            pixels[rows] = tf.round(images * 255.0)
        examples = dataclasses.replace(examples, pixels=pixels)
    else:
        usable = image_sizes(examples).all(axis=1)
    return drop(examples, usable)


def drop(examples, usable):
    """Without the examples whose entry in `usable`, N booleans, is false.

    Returns:
        `Examples`; `bad` says why each cannot be decoded.
    """
    if usable.all():
        return examples
    bad = explain(examples, np.flatnonzero(~usable))
    kept = examples.select(usable)
    return dataclasses.replace(kept, bad=(*examples.bad, *bad))


def image_sizes(examples):
    """Height and width of all images, int `[N, 2]`; 0 of what cannot be decoded."""
    sizes = np.zeros((len(examples), 2), np.int64)
    read = examples.images.reader()

    def load(index):
        return tf.shape(decoding.decode_image(read(index)))[:2]

    for rows, values in _try(load, len(examples)):
        sizes[rows] = values
    return sizes


def try_all(load, count):
    """Iterator over `(indices, what load gives for them)`, without those that fail.

    Args:
        load: function from the index of an image to tensors, in TensorFlow ops.
        count: N.
    """
    tried = (
        tf.data.Dataset.range(count)
        .map(lambda i: (i, load(i)), num_parallel_calls=tf.data.AUTOTUNE)
        .ignore_errors()
        .batch(1024)
        .prefetch(2)
    )
    return iter(tried)


def _try(load, count):
    """`try_all` that says how far it is."""
    for indices, values in try_all(load, count):
        yield indices, values
        logging.log_every_n_seconds(
            logging.INFO, "decoded the images up to %d of %d", 10, indices[-1], count
        )


def explain(examples, indices):
    """Why some images could not be decoded, a list of `BadExample`."""
    read = examples.images.reader()
    bad = []
    for index in indices:
        key = examples.keys[index] if examples.keys else f"example {index}"
        reason = "image that could be read only later"
        try:
            decoding.decode_image(read(tf.constant(index)))
        except tf.errors.OpError as error:
            reason = _REASONS.get(type(error), "undecodable image")
            if decoding.TOO_LARGE in error.message:
                reason = decoding.TOO_LARGE
        bad.append(BadExample(examples.images.file_of(index), key, reason))
    return bad
