"""Which examples make up each batch, as a pure function of (seed, step)."""

import math

import tensorflow as tf

# Added to a seed, so that what mixes a batch has nothing to do with what fills it.
_MIXING = 1 << 32


def batch_counts(groups, batch_size):
    """How many examples of each group a batch holds.

    Args:
        groups: `[(number of examples, weight)]`; the weights need not add up to 1.
        batch_size: B.

    Returns:
        A number for each group, B together: the shares of the weights, rounded.

    Raises:
        ValueError: if a group has fewer examples than its part of a batch, which would
            then hold one twice, or a part of none.
    """
    total = sum(weight for _, weight in groups)
    exact = [batch_size * weight / total for _, weight in groups]
    counts = [int(share) for share in exact]
    largest_remainders = sorted(
        range(len(groups)), key=lambda group: counts[group] - exact[group]
    )
    for group in largest_remainders[: batch_size - sum(counts)]:
        counts[group] += 1
    for count, (size, weight) in zip(counts, groups, strict=True):
        part = batch_size if len(groups) == 1 else f"{batch_size}, {count} of a source,"
        if count > size:
            limit = int(batch_size * size / count)
            raise ValueError(
                f"batch_size {part} is more than the {size} examples; "
                f"use {limit} or less"
            )
        if not count:
            raise ValueError(
                f"batch_size {batch_size} has no place for a source of weight "
                f"{weight:.3g}; use {math.ceil(total / weight)} or more"
            )
    return counts


def shuffled_indices(
    num_examples, batch_size, first_step, last_step, seed, num_parts=1, own_parts=(0,)
):
    """`mixed_indices` of one group of examples."""
    groups = [(num_examples, 1.0)]
    return mixed_indices(
        groups, batch_size, first_step, last_step, seed, num_parts, own_parts
    )


def mixed_indices(
    groups, batch_size, first_step, last_step, seed, num_parts=1, own_parts=(0,)
):
    """Which examples make up each batch.

    Every epoch of a group is another permutation of its examples. What is left after
    its last whole batch waits for another epoch: a batch over two epochs could hold an
    example twice, and each would be a negative of the other.

    Args:
        groups: `[(number of examples, weight)]`; a group's indices follow those of the
            one before. Every batch holds the `batch_counts` of them, mixed.
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
        ValueError: as `batch_counts`.
    """
    counts = batch_counts(groups, batch_size)

    def draw(step):
        start, drawn = 0, []
        for group, (count, (size, _)) in enumerate(zip(counts, groups, strict=True)):
            epoch, step_in_epoch = step // (size // count), step % (size // count)
            key = _cipher_key(seed, epoch * len(groups) + group)
            places = step_in_epoch * count + tf.range(count, dtype=tf.int64)
            drawn.append(start + _permute(places, size, key))
            start += size
        if len(groups) == 1:
            return step, drawn[0]
        key = _cipher_key(seed + _MIXING, step)
        order = _permute(tf.range(batch_size, dtype=tf.int64), batch_size, key)
        return step, tf.gather(tf.concat(drawn, axis=0), order)

    def split(step, indices):
        parts = tf.reshape(indices, (num_parts, batch_size // num_parts))
        own = tf.constant(list(own_parts), tf.int64)
        return tf.data.Dataset.from_tensor_slices(
            (step * num_parts + own, tf.gather(parts, own))
        )

    dataset = tf.data.Dataset.range(first_step, last_step).map(draw)
    return dataset if num_parts == 1 else dataset.flat_map(split)


def _cipher_key(seed, number):
    """`[3]` int64: the op's cipher hardly mixes under keys of few bits."""
    return tf.random.stateless_uniform(
        [3], tf.stack([tf.constant(seed, tf.int64), number]),
        minval=None, maxval=None, dtype=tf.int64, alg="philox",
    )  # fmt: skip


def _permute(places, size, key):
    """What a permutation of `size` numbers has at some places."""
    return tf.raw_ops.RandomIndexShuffle(
        index=places, seed=key, rounds=8, max_index=tf.constant(size - 1, tf.int64)
    )
