"""Batches as pure functions of (seed, step), so that a run resumes at any step."""

import itertools
import math

import numpy as np
import tensorflow as tf

from basic_tf.data import augmentation as augmentations
from basic_tf.data import decoding, preprocessing, simclr_augmentation

# Added to a seed, so that captions have nothing to do with the order of the examples.
_CHOOSING = 2 << 32
_VIEWING = 5 << 32  # `augmentation` has those between


def row_loader(rows):
    """A field of `training_batches`: of `rows`, `[N, ...]`, those of the indices."""
    rows = tf.constant(rows)
    return lambda step, indices: tf.gather(rows, indices)


def caption_chooser(examples, seed):
    """A field of `training_batches`: for each example one of its captions, drawn.

    Args:
        examples: `sources.Examples`.
        seed: int; the choice of a step depends on it and on the step alone.

    Returns:
        A function to indices into `examples.captions`, int64 `[B]`.
    """
    counts = tf.constant(examples.caption_counts, tf.int64)
    starts = tf.cumsum(counts, exclusive=True)

    def choose(step, indices):
        seed_pair = tf.stack([tf.constant(seed + _CHOOSING, tf.int64), step])
        draws = tf.random.stateless_uniform(
            tf.shape(indices), seed_pair, dtype=tf.float64, alg="philox"
        )
        numbers = draws * tf.cast(tf.gather(counts, indices), tf.float64)
        return tf.gather(starts, indices) + tf.cast(numbers, tf.int64)

    return choose


def number_captions(captions, tokenizer):
    """A number for each caption, equal for those that a text encoder cannot tell apart.

    Args:
        captions: N strings.
        tokenizer: from strings to rows of ids, which may fold case and spaces.

    Returns:
        `[N]` int.
    """
    distinct, inverse = np.unique(captions, return_inverse=True)
    _, numbers = np.unique(tokenizer(distinct), axis=0, return_inverse=True)
    return numbers[inverse]


def image_loader(examples, image_size):
    """A function from the index of an example to its image, `[S, S, 3]` in [0, 1]."""
    if examples.pixels is not None:
        if examples.pixels.shape[1] != image_size:
            kept = examples.pixels.shape[1]
            raise ValueError(f"the pixels were kept at {kept}, not at {image_size}")
        pixels = tf.constant(examples.pixels)
        return lambda index: tf.cast(tf.gather(pixels, index), tf.float32) / 255.0
    read = examples.images.reader()
    return lambda index: preprocessing.load_image(read(index), image_size)


def training_batches(indices_by_step, fields, images=None):
    """Batches for a training phase.

    Args:
        indices_by_step: dataset from `example_order.mixed_indices`.
        fields: `{name: function of (number, indices) -> tensor [B, ...]}`, with what
            `indices_by_step` gives.
        images: dataset of `[B, S, S, 3]` for the same steps, from `training_images`;
            adds `"image"`.

    Returns:
        `tf.data.Dataset` of dictionaries.
    """
    if not fields:
        return images.map(lambda image: {"image": image}).prefetch(4)
    dataset = indices_by_step.map(
        lambda *of: {name: field(*of) for name, field in fields.items()}
    )
    if images is not None:
        dataset = tf.data.Dataset.zip(dataset, images).map(
            lambda batch, image: batch | {"image": image}
        )
    return dataset.prefetch(4)


def training_images(examples, image_size, indices_by_step, seed, augmentation=None):
    """The images of each step, augmented.

    Args:
        examples: `sources.Examples`.
        image_size: side S of the images in pixels.
        indices_by_step: dataset from `example_order.mixed_indices`.
        seed: int; the augmentation of an image depends on it, on the step and on the
            image's place in the batch alone.
        augmentation: `{kind: its options}`, see `augmentation`; None for none. A crop
            is one of the file's image, also where pixels are kept.

    Returns:
        `tf.data.Dataset` of `[B, S, S, 3]` float32 in [0, 1].

    Raises:
        ValueError: as `augmentation.check`.
    """
    augmentation = augmentation or {}
    augmentations.check(augmentation)
    if "crop" in augmentation:
        read = examples.images.reader()

        def load(index, place):
            image = decoding.decode_image(read(index))
            return augmentations.of_image(image, seed, place, image_size, augmentation)
    else:
        load_whole = image_loader(examples, image_size)

        def load(index, place):
            return load_whole(index)

    images = _in_places(indices_by_step, load)
    if not augmentation.keys() - {"crop"}:
        return images
    steps = indices_by_step.map(lambda step, indices: step)
    return tf.data.Dataset.zip(steps, images).map(
        lambda step, images: augmentations.of_batch(images, seed, step, augmentation),
        num_parallel_calls=tf.data.AUTOTUNE,
    )


def training_views(examples, image_size, indices_by_step, seed, strength=1.0):
    """Two views of the images of each step, as SimCLR augments them.

    Args:
        examples, image_size, indices_by_step, seed: as of `training_images`.
        strength: of the colours, see `simclr_augmentation.two_views`.

    Returns:
        `tf.data.Dataset` of `[B, 2, S, S, 3]` float32 in [0, 1].
    """
    read = examples.images.reader()

    def load(index, place):
        image = decoding.decode_image(read(index))
        pair = tf.stack([tf.constant(seed + _VIEWING, tf.int64), place])
        views = [
            simclr_augmentation.random_view(image, view_seed, image_size, strength)
            for view_seed in tf.unstack(tf.random.split(pair, alg="philox"))
        ]
        return tf.ensure_shape(tf.stack(views), (2, image_size, image_size, 3))

    return _in_places(indices_by_step, load)


def _in_places(indices_by_step, load):
    """`load(index, place)` of all examples, in the batches of the steps."""
    (batch_size,) = indices_by_step.element_spec[1].shape

    def number_places(step, indices):
        return indices, step * batch_size + tf.range(batch_size, dtype=tf.int64)

    return (
        indices_by_step.map(number_places)
        .unbatch()
        .map(load, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size, drop_remainder=True)
    )


def evaluation_batches(examples, image_size, batch_size):
    """All images once, in order, in batches of one shape: a model compiles once.

    Args:
        examples: `sources.Examples`.
        image_size: side S of the images in pixels.
        batch_size: images at a time, at most: fewer where that evens the batches out.

    Returns:
        `tf.data.Dataset` of `(images, mask)`: `[B, S, S, 3]` float32 in [0, 1], and
        `[B]` bool, false for what fills up the last batch.
    """
    num_batches = math.ceil(len(examples) / batch_size)
    batch_size = math.ceil(len(examples) / num_batches)

    def fill_up(images):
        count = tf.shape(images)[0]
        images = tf.pad(images, [[0, batch_size - count], [0, 0], [0, 0], [0, 0]])
        images = tf.ensure_shape(images, [batch_size, image_size, image_size, 3])
        return images, tf.range(batch_size) < count

    return (
        tf.data.Dataset.range(len(examples))
        .map(image_loader(examples, image_size), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .map(fill_up)
        .prefetch(2)
    )


def label_loader(examples, balance=0.0):
    """A field of `training_batches`: how much each label of an example counts.

    A label weighs `share^-balance`, where its share is that of the examples that carry
    it: a common label (a colour) then does not count as much as a rare one (a name).

    Args:
        examples: `sources.Examples` with `label_sets`.
        balance: 0 for the same weight for all labels, 1 for the inverse of their
            frequency.

    Returns:
        A function to `[B, C]` float32, 0 for the labels that an example has not.
    """
    num_classes = len(examples.label_names)
    lengths = np.array([len(labels) for labels in examples.label_sets])
    flat = list(itertools.chain.from_iterable(examples.label_sets))
    rows = np.repeat(np.arange(len(examples)), lengths)
    # Each label of an example once, in the order of the examples.
    rows, labels = np.divmod(
        np.unique(rows * num_classes + np.array(flat, np.int64)), num_classes
    )
    carriers = np.bincount(labels, minlength=num_classes).astype(np.float32)
    shares = carriers / np.float32(len(examples))
    weights = tf.constant(np.where(shares > 0, shares, 1) ** -balance)
    sets = tf.RaggedTensor.from_value_rowids(
        tf.constant(labels), tf.constant(rows), len(examples)
    )

    def load(step, indices):
        of_batch = tf.gather(sets, indices)
        places = tf.stack([of_batch.value_rowids(), of_batch.values], axis=1)
        shape = tf.stack([tf.size(indices, tf.int64), num_classes])
        rows = tf.scatter_nd(places, tf.gather(weights, of_batch.values), shape)
        return tf.ensure_shape(rows, [indices.shape[0], num_classes])

    return load
