"""Batches as pure functions of (seed, step), so that a run resumes at any step."""

import dataclasses

import numpy as np
import tensorflow as tf

from basic_tf.data import preprocessing

MAX_PIXEL_BYTES = 2**30


def shuffled_indices(num_examples, batch_size, first_step, last_step, seed):
    """Which examples make up each batch.

    Every epoch is another permutation of all examples; a batch may reach over the end
    of an epoch, so no example is lost.

    Args:
        num_examples: N.
        batch_size: B.
        first_step: the first batch to give.
        last_step: the batch to stop before.
        seed: int; the batch of a step depends on it and on the step alone.

    Returns:
        `tf.data.Dataset` of `(step, [B] int64)`.

    Raises:
        ValueError: if there are fewer examples than one batch.
    """
    if num_examples < batch_size:
        raise ValueError(
            f"batch_size {batch_size} is more than the {num_examples} examples; "
            f"use {num_examples} or less"
        )

    def draw(step):
        positions = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        epochs = positions // num_examples
        seeds = tf.stack([tf.fill([batch_size], tf.constant(seed, tf.int64)), epochs])
        seeds = tf.pad(tf.transpose(seeds), [[0, 0], [0, 1]])
        return step, tf.raw_ops.RandomIndexShuffle(
            index=positions % num_examples,
            seed=seeds,
            max_index=tf.constant(num_examples - 1, tf.int64),
        )

    return tf.data.Dataset.range(first_step, last_step).map(draw)


def image_loader(examples, image_size):
    """A function from the index of an example to its image, `[S, S, 3]` in [0, 1]."""
    if examples.pixels is not None:
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


def training_batches(
    examples,
    image_size,
    batch_size,
    first_step,
    last_step,
    seed,
    augmentation=None,
    label_weighting=None,
    tokenizer=None,
    image_embeddings=None,
):
    """Batches for a training phase.

    Args:
        examples: `sources.Examples`.
        image_size: side of the images in pixels.
        batch_size, first_step, last_step, seed: see `shuffled_indices`.
        augmentation: arguments of `preprocessing.augment_affine`, or None.
        label_weighting: adds `"labels"`, `[B, C]` float32; see `label_targets`.
        tokenizer: adds `"token_ids"`, `[B, L]` int32.
        image_embeddings: `[N, D]`; gives `"image_embedding"` in place of `"image"`.

    Returns:
        `tf.data.Dataset` of dictionaries.
    """
    steps = shuffled_indices(len(examples), batch_size, first_step, last_step, seed)
    captions = tf.constant(examples.captions)
    if image_embeddings is not None:
        image_embeddings = tf.constant(image_embeddings)
    if label_weighting:
        targets = tf.constant(label_targets(examples, label_weighting))

    def complete(step, indices, images):
        batch = {}
        if images is None:
            batch["image_embedding"] = tf.gather(image_embeddings, indices)
        elif augmentation:
            seed_pair = tf.stack([tf.constant(seed, tf.int64), step])
            batch["image"] = preprocessing.augment_affine(
                images, seed_pair, **augmentation
            )
        else:
            batch["image"] = images
        if label_weighting:
            batch["labels"] = tf.gather(targets, indices)
        if tokenizer is not None:
            batch["token_ids"] = tokenizer(tf.gather(captions, indices))
        return batch

    if image_embeddings is not None:
        dataset = steps.map(lambda step, indices: complete(step, indices, None))
    else:
        load = image_loader(examples, image_size)
        images = (
            steps.map(lambda step, indices: indices)
            .unbatch()
            .map(load, num_parallel_calls=tf.data.AUTOTUNE)
            .batch(batch_size, drop_remainder=True)
        )
        dataset = tf.data.Dataset.zip(steps, images).map(
            lambda step, images: complete(*step, images),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    return dataset.prefetch(4)


def evaluation_batches(examples, image_size, batch_size):
    """All images once, in order; the last batch may be smaller. `[b, S, S, 3]`."""
    return (
        tf.data.Dataset.range(len(examples))
        .map(image_loader(examples, image_size), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .prefetch(2)
    )


def label_targets(examples, weighting="uniform"):
    """`[N, C]` float32: the target distribution of each example over the classes.

    Args:
        examples: `sources.Examples` with `labels`.
        weighting: "uniform" over an example's labels, or "information": a label weighs
            `-ln` of the share of examples that carry it, so that a common label (a
            colour) does not count as much as a rare one (a name).

    Raises:
        ValueError: for another weighting.
    """
    targets = np.zeros((len(examples), len(examples.label_names)), np.float32)
    for row, labels in enumerate(examples.labels):
        targets[row, labels] = 1
    if weighting == "information":
        targets *= -np.log(np.clip(targets.mean(axis=0), 1e-9, 1 - 1e-9))
    elif weighting != "uniform":
        raise ValueError(f"label weighting {weighting!r} is not uniform or information")
    return targets / np.maximum(targets.sum(axis=1, keepdims=True), 1e-9)
