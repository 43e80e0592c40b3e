"""Microbatch gradients straight into the optimizer's moments, without a buffer.

BASIC section 4. With gradients `c_1 .. c_K` of the microbatches, whose sum is that of
the batch, `g`:

- The first moment `b1 m + (1 - b1) g` adds up one microbatch at a time, exactly. What a
  bfloat16 slot cannot hold of it is carried beside it to the end of the step.
- The second moment needs `g^2`, and `g^2 = K sum(c_i^2) - K^2 Var[c]`. The variance is
  estimated from the two halves `c_i = h + h'` of each microbatch: `E[(h - h')^2]` is
  `Var[c_i]`. It is linear in squares, so that AdaFactor's row and column means take it.
  The estimate for finite K is (1 - 1/K) of it (ours; "paper" subtracts all of it), and
  the sum is cut off at 0.

A microbatch costs one backward pass more than with a buffer, for `h - h'`.
"""

import tensorflow as tf

from basic_tf import slices
from basic_tf.optimizers import moments as optimizer_moments
from basic_tf.training import microbatching

CORRECTIONS = ("none", "paper", "unbiased")


def correction_factor(correction, num_microbatches):
    """The share of the variance that is subtracted from the mean square.

    Raises:
        ValueError: for an unknown correction.
    """
    factors = {"none": 0.0, "paper": 1.0, "unbiased": 1 - 1 / num_microbatches}
    if correction not in factors:
        raise ValueError(
            f"correction {correction!r} is none of {', '.join(CORRECTIONS)}"
        )
    return factors[correction]


def check(optimizer, batch):
    """Refuses what cannot be accumulated in slots.

    Raises:
        ValueError: for an optimizer without slots of this kind or with options that
            need the whole gradient, for several replicas, whose sums over gradients
            have no place in a loop, or for microbatches without halves.
    """
    if not isinstance(optimizer, optimizer_moments.MomentOptimizer):
        raise ValueError(f"{type(optimizer).__name__} cannot accumulate in its slots")
    for option in ("clipnorm", "global_clipnorm", "clipvalue", "use_ema"):
        if getattr(optimizer, option):
            raise ValueError(f"{option} needs the whole gradient; accumulate in buffer")
    if batch.replicas.count > 1:
        raise ValueError("several replicas cannot accumulate in slots; use buffer")
    if batch.num_microbatches > 1 and batch.microbatch_size % 2:
        raise ValueError(
            f"microbatch size {batch.microbatch_size} has no halves, which the "
            "variance is estimated from"
        )


def accumulate(batch, by_embeddings, optimizer, correction="unbiased"):
    """Phase *accumulate* of Algorithm 1, into the slots of the optimizer.

    Args:
        batch: `microbatching.Batch`.
        by_embeddings: gradients `[B, D]` of its embeddings.
        optimizer: `MomentOptimizer`, built. Its first moments take the gradients;
            nothing else of it moves before `apply_moments`.
        correction: "none", "paper" or "unbiased".

    Returns:
        `(remainders, second_moments, statistics)`: of the encoder's weights, for
        `optimizer.apply_moments`, and as `Pass.backward`.

    Raises:
        ValueError: as `check` and `correction_factor`.
    """
    check(optimizer, batch)
    count = batch.num_microbatches
    factor = correction_factor(correction, count)
    slots = [optimizer.slots(weight) for weight in batch.encoder.weights]

    def body(index, remainders, squares, statistics):
        with microbatching.watching(batch.weights, persistent=True) as tape:
            embeddings, after = batch.forward(index)
            value = batch.product(embeddings, by_embeddings, index)
            if factor:
                signed = embeddings * _signs(batch.microbatch_size)
                contrast = batch.product(signed, by_embeddings, index)
        gradients = batch.gradients(tape, value)
        remainders = [
            add_to_slot(momentum, remainder, (1 - optimizer.beta_1) * gradient)
            for (momentum, _), remainder, gradient in zip(
                slots, remainders, gradients, strict=True
            )
        ]
        squares = _add_squares(squares, gradients, count)
        if factor:
            # One gradient at a time: this one is gone before the next is made.
            with tf.control_dependencies(tf.nest.flatten((remainders, squares))):
                contrasts = batch.gradients(tape, contrast)
            squares = _add_squares(squares, contrasts, -factor * count)
        statistics = microbatching.add(statistics, batch.moves(after))
        return index + 1, remainders, squares, statistics

    remainders, squares, statistics = slices.repeat(
        count,
        body,
        [decay_slot(momentum, optimizer.beta_1) for momentum, _ in slots],
        [tuple(tf.zeros(moment.shape) for moment in moments) for _, moments in slots],
        batch.start(),
    )
    second_moments = [
        optimizer.average(
            [moment.value for moment in moments],
            [tf.maximum(square, 0.0) for square in of_weight],
        )
        for (_, moments), of_weight in zip(slots, squares, strict=True)
    ]
    remainders = [
        None if momentum.dtype == "float32" else remainder
        for (momentum, _), remainder in zip(slots, remainders, strict=True)
    ]
    return remainders, second_moments, statistics


def decay_slot(slot, beta_1):
    """`slot <- beta_1 * slot`; returns what a bfloat16 slot could not hold of it."""
    if slot.dtype == "float32":
        slot.assign(beta_1 * slot.value)
        return tf.zeros(())  # in place of a remainder, which there is none of
    return add_to_slot(slot, tf.zeros(slot.shape, slot.dtype), 0.0, beta_1)


def add_to_slot(slot, remainder, part, decay=1.0):
    """`slot <- decay * slot + part`; returns what it could not hold of it.

    Args:
        slot: Keras variable of a first moment.
        remainder: what it could not hold before, of its dtype; `[]` for float32.
        part: float32.
        decay: 1 for a float32 slot.
    """
    if slot.dtype == "float32":
        slot.value.assign_add(part)
        return remainder
    total = tf.cast(slot.value, tf.float32) + tf.cast(remainder, tf.float32)
    total = decay * total + part
    held = tf.cast(total, slot.dtype)
    slot.assign(held)
    return tf.cast(total - tf.cast(held, tf.float32), slot.dtype)


def _signs(size):
    """`[size, 1]`: 1 for the first half of a microbatch, -1 for the second."""
    return tf.where(tf.range(size) < size // 2, 1.0, -1.0)[:, tf.newaxis]


def _add_squares(squares, gradients, factor):
    """Adds `factor` times the mean squares of the gradients, tuple by tuple."""
    return [
        tuple(
            total + factor * square
            for total, square in zip(
                totals,
                optimizer_moments.mean_squares(gradient, len(totals)),
                strict=True,
            )
        )
        for totals, gradient in zip(squares, gradients, strict=True)
    ]
