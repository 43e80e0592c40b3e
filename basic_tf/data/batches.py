"""Batches as pure functions of (seed, step), so that a run resumes at any step."""

import dataclasses

import numpy as np
import tensorflow as tf

from basic_tf.data import augmentation as affine
from basic_tf.data import preprocessing

MAX_PIXEL_BYTES = 2**30


def check_batch_size(batch_size, num_examples):
    """Refuses a batch that would hold an example twice.

    Raises:
        ValueError: if there are fewer examples than one batch.
    """
    if num_examples < batch_size:
        raise ValueError(
            f"batch_size {batch_size} is more than the {num_examples} examples; "
            f"use {num_examples} or less"
        )


def shuffled_indices(
    num_examples, batch_size, first_step, last_step, seed, num_parts=1, own_parts=(0,)
):
    """Which examples make up each batch.

    Every epoch is another permutation of all examples. What is left after its last
    whole batch waits for another epoch: a batch over two epochs could hold an example
    twice, and each would be a negative of the other.

    Args:
        num_examples: N.
        batch_size: B.
        first_step: the first batch to give.
        last_step: the batch to stop before.
        seed: int; the batch of a step depends on it and on the step alone.
        num_parts: equal parts that a batch is split into, for as many replicas.
        own_parts: which of them to give, one after another.

    Returns:
        `tf.data.Dataset` of `(number, [B / parts] int64)`; the number counts the parts
        of all batches, and is the step where a batch has one.

    Raises:
        ValueError: if there are fewer examples than one batch.
    """
    check_batch_size(batch_size, num_examples)

    steps_per_epoch = num_examples // batch_size

    def draw(step):
        epoch, step_in_epoch = step // steps_per_epoch, step % steps_per_epoch
        start = step_in_epoch * batch_size
        # The op's cipher hardly mixes under keys of few bits such as small numbers.
        key = tf.random.stateless_uniform(
            [3], tf.stack([tf.constant(seed, tf.int64), epoch]),
            minval=None, maxval=None, dtype=tf.int64, alg="philox",
        )  # fmt: skip
        return step, tf.raw_ops.RandomIndexShuffle(
            index=start + tf.range(batch_size, dtype=tf.int64),
            seed=key,
            rounds=8,
            max_index=tf.constant(num_examples - 1, tf.int64),
        )

    def split(step, indices):
        parts = tf.reshape(indices, (num_parts, batch_size // num_parts))
        own = tf.constant(list(own_parts), tf.int64)
        return tf.data.Dataset.from_tensor_slices(
            (step * num_parts + own, tf.gather(parts, own))
        )

    dataset = tf.data.Dataset.range(first_step, last_step).map(draw)
    return dataset if num_parts == 1 else dataset.flat_map(split)


def row_loader(rows):
    """A function from indices `[B]` to the rows, `[N, ...]`, that they stand for."""
    rows = tf.constant(rows)
    return lambda indices: tf.gather(rows, indices)


def image_loader(examples, image_size):
    """A function from the index of an example to its image, `[S, S, 3]` in [0, 1]."""
    if examples.pixels is not None:
        if examples.pixels.shape[1] != image_size:
            kept = examples.pixels.shape[1]
            raise ValueError(f"the pixels were kept at {kept}, not at {image_size}")
        pixels = tf.constant(examples.pixels)
        return lambda index: tf.cast(tf.gather(pixels, index), tf.float32) / 255.0
    images = tf.constant(examples.images)

    def load(index):
        image = tf.gather(images, index)
        if examples.are_paths:
            image = tf.io.read_file(image)
        return preprocessing.load_image(image, image_size)

    return load


def keep_pixels(examples, image_size):
    """Decodes all images once, if they fit into `MAX_PIXEL_BYTES` as 8-bit pixels.

    Decoding a small image costs about as much as a tenth of its training step; a set
    that trains for several epochs should pay that once.

    Returns:
        `sources.Examples`, with `pixels` where they fit.
    """
    if len(examples) * image_size**2 * 3 > MAX_PIXEL_BYTES:
        return examples
    pixels = np.empty((len(examples), image_size, image_size, 3), np.uint8)
    start = 0
    for images in evaluation_batches(examples, image_size, 1024):
        pixels[start : start + len(images)] = tf.round(images * 255.0)
        start += len(images)
    return dataclasses.replace(examples, pixels=pixels)


def training_batches(indices_by_step, fields, images=None):
    """Batches for a training phase.

    Args:
        indices_by_step: dataset from `shuffled_indices`.
        fields: `{name: function of the indices -> tensor [B, ...]}`.
        images: dataset of `[B, S, S, 3]` for the same steps, from `training_images`;
            adds `"image"`.

    Returns:
        `tf.data.Dataset` of dictionaries.
    """
    dataset = indices_by_step.map(
        lambda step, indices: {name: field(indices) for name, field in fields.items()}
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
        indices_by_step: dataset from `shuffled_indices`.
        seed: int; the augmentation of a step depends on it and on the step alone.
        augmentation: arguments of `augmentation.augment_affine`; None for none.

    Returns:
        `tf.data.Dataset` of `[B, S, S, 3]` float32 in [0, 1].

    Raises:
        ValueError: for a strength of augmentation below 0.
    """
    (batch_size,) = indices_by_step.element_spec[1].shape
    images = (
        indices_by_step.map(lambda step, indices: indices)
        .unbatch()
        .map(image_loader(examples, image_size), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size, drop_remainder=True)
    )
    if not augmentation:
        return images

    def augment(step, images):
        seed_pair = tf.stack([tf.constant(seed, tf.int64), step])
        return affine.augment_affine(images, seed_pair, **augmentation)

    steps = indices_by_step.map(lambda step, indices: step)
    return tf.data.Dataset.zip(steps, images).map(
        augment, num_parallel_calls=tf.data.AUTOTUNE
    )


def evaluation_batches(examples, image_size, batch_size):
    """All images once, in order; the last batch may be smaller. `[b, S, S, 3]`."""
    return (
        tf.data.Dataset.range(len(examples))
        .map(image_loader(examples, image_size), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .prefetch(2)
    )


def label_weights(examples, balance=0.0):
    """`[N, C]` float32: how much each label of an example counts; 0 for the others.

    A label weighs `share^-balance`, where its share is that of the examples that carry
    it: a common label (a colour) then does not count as much as a rare one (a name).

    Args:
        examples: `sources.Examples` with `label_sets`.
        balance: 0 for the same weight for all labels, 1 for the inverse of their
            frequency.
    """
    weights = np.zeros((len(examples), len(examples.label_names)), np.float32)
    for row, labels in enumerate(examples.label_sets):
        weights[row, labels] = 1
    shares = weights.mean(axis=0)
    return weights * np.where(shares > 0, shares, 1) ** -balance
