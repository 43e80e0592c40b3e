"""The images of rows: decoded once to see what they are, and read again."""

import dataclasses
import functools

import tensorflow as tf

from basic_tf.data import checking, decoding, filters, preprocessing, ssim
from basic_tf.data.example_table import Examples


@dataclasses.dataclass
class Sight:
    """What decoding has shown; dictionaries by the indices of the rows that decode.

    Attributes:
        sides: length of the shorter side in pixels.
        digests: `filters.image_digest`.
        grays: `[32, 32]` in [0, 1], for `contamination`; empty if not asked for.
        bad: `{index of a row that does not decode: BadExample}`.
    """

    sides: dict = dataclasses.field(default_factory=dict)
    digests: dict = dataclasses.field(default_factory=dict)
    grays: dict = dataclasses.field(default_factory=dict)
    bad: dict = dataclasses.field(default_factory=dict)


def see(rows, images, with_grays=False):
    """Reads and decodes images.

    Args:
        rows: list of `example_rows.Row`.
        images: one of the `image_places`, the kind of the rows' places.
        with_grays: give `grays`, too.

    Returns:
        `Sight`.
    """
    images = images.at([row.place for row in rows])
    read, look, sight = images.reader(), _looker(with_grays), Sight()
    for indices, values in checking.try_all(lambda i: look(read(i)), len(rows)):
        indices = indices.numpy().tolist()
        sides = values["side"].numpy().tolist()
        digests = map(filters.image_digest, values["bytes"].numpy())
        sight.sides |= zip(indices, sides, strict=True)
        sight.digests |= zip(indices, digests, strict=True)
        if with_grays:
            grays = ssim.to_gray(values["small"])
            sight.grays |= zip(indices, grays, strict=True)
    broken = [index for index in range(len(rows)) if index not in sight.sides]
    named = Examples(images, [""] * len(rows), keys=[row.key for row in rows])
    sight.bad |= zip(broken, checking.explain(named, broken), strict=True)
    return sight


@functools.cache
def _looker(with_grays):
    """A function of image bytes; traced once a process: decoding is a large graph."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def look(image_bytes):
        image = decoding.decode_image(image_bytes)
        found = {"bytes": image_bytes, "side": tf.reduce_min(tf.shape(image)[:2])}
        if with_grays:
            found["small"] = preprocessing.resize_and_crop(image, ssim.IMAGE_SIZE)
        return found

    return look


def read_again(rows, images):
    """Yields the bytes of images that were seen before.

    Args:
        rows: list of `example_rows.Row` with digests.
        images: as in `see`.

    Raises:
        ValueError: if the bytes are not what they were.
    """
    images = images.at([row.place for row in rows])
    dataset = tf.data.Dataset.range(len(rows)).map(
        images.reader(), num_parallel_calls=tf.data.AUTOTUNE
    )
    for row, image_bytes in zip(rows, dataset.as_numpy_iterator(), strict=True):
        if filters.image_digest(image_bytes) != row.digest:
            raise ValueError(f"{row.key}: its image has changed since it was decoded")
        yield image_bytes
