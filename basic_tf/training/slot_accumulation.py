"""Microbatch gradients straight into the optimizer's moments, without a buffer.

BASIC section 4. With gradients `c_1 .. c_K` of all microbatches of all replicas, whose
sum is that of the batch, `g`:

- The first moment `b1 m + (1 - b1) g` adds up one microbatch at a time, exactly. What a
  bfloat16 slot cannot hold of it is carried beside it, in bfloat16, to the end of the
  step: together they take what a float32 slot does.
- The second moment needs `g^2`, and `g^2 = K sum(c_i^2) - K^2 Var[c]`. The variance is
  estimated from the two halves `c_i = h + h'` of each microbatch: `E[(h - h')^2]` is
  `Var[c_i]`, for halves drawn at random that do not act on each other. (Under
  batch-norm statistics of their microbatch they do.) The paper takes replicas in place
  of halves, which needs the sum over replicas of every microbatch's gradient; a loop of
  `tf.distribute` cannot have it. The estimate is linear in squares, so that
  AdaFactor's row and column means take it. For finite K, (1 - 1/K) of it is unbiased
  (ours; "paper" subtracts all of it).
- Each replica adds its own microbatches up. At the end of the loop first moments meet
  as the mean of all copies of a slot, mean squares as sums.
- A single estimate may be negative. So it is its average that is bounded: from below,
  by the part of `sum(c_i^2)`, which a step adds to it at least (ours).

A microbatch costs one backward pass more than with a buffer, for `h - h'`.
"""

import tensorflow as tf

from basic_tf import slices
from basic_tf.optimizers.moments import MomentOptimizer, mean_squares
from basic_tf.replicas import ONE_REPLICA, own
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


def check(optimizer, microbatch_size, batch_size):
    """Refuses what cannot be accumulated in slots.

    Args:
        optimizer: Keras optimizer.
        microbatch_size: M; 0 for B.
        batch_size: B of a replica.

    Raises:
        ValueError: for an optimizer without slots of this kind or with options that
            need the whole gradient, or for microbatches without halves.
    """
    if not isinstance(optimizer, MomentOptimizer):
        raise ValueError(
            f"{type(optimizer).__name__} cannot accumulate in its slots; use "
            "adafactorw or adamw, or accumulate in buffer"
        )
    for option in ("clipnorm", "global_clipnorm", "clipvalue"):
        if getattr(optimizer, option):
            raise ValueError(f"{option} needs the whole gradient; accumulate in buffer")
    if microbatch_size not in (0, batch_size) and microbatch_size % 2:
        raise ValueError(
            f"microbatch size {microbatch_size} has no halves, which the variance is "
            "estimated from; use an even one"
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
    check(optimizer, batch.microbatch_size, batch.batch_size)
    count = batch.num_microbatches * batch.replicas.count
    factor = correction_factor(correction, count)
    slots = [optimizer.slots(weight) for weight in batch.encoder.weights]

    zeros = [tuple(tf.zeros(m.shape) for m in moments) for _, moments in slots]
    remainders, squares, spreads, statistics = slices.repeat(
        batch.num_microbatches,
        _add_microbatch(batch, by_embeddings, optimizer, slots, factor),
        [decay_slot(momentum, optimizer.beta_1) for momentum, _ in slots],
        zeros,
        zeros,
        batch.start(),
    )
    remainders = _over_replicas(
        batch.replicas, [momentum for momentum, _ in slots], remainders
    )
    squares, spreads = batch.replicas.total((squares, spreads))
    second_moments = [
        second_moments_after(
            optimizer, [m.value for m in moments], of_weight, spread, count, factor
        )
        for (_, moments), of_weight, spread in zip(slots, squares, spreads, strict=True)
    ]
    return remainders, second_moments, batch.over_replicas(statistics)


def _add_microbatch(batch, by_embeddings, optimizer, slots, factor):
    """The body of the loop over microbatches."""
    part = batch.replicas.count * (1 - optimizer.beta_1)

    def body(index, remainders, squares, spreads, statistics):
        with microbatching.watching(batch.weights, persistent=True) as tape:
            embeddings, after = batch.forward(index)
            value = batch.product(embeddings, by_embeddings, index)
            if factor:
                signed = embeddings * _signs(batch.microbatch_size)
                contrast = batch.product(signed, by_embeddings, index)
        gradients = batch.gradients(tape, value)
        remainders, squares = _one_by_one(
            lambda slot, remainder, totals, gradient: (
                add_to_slot(slot[0], remainder, part * gradient),
                _add_squares(totals, gradient),
            ),
            *(slots, remainders, squares, gradients),
        )
        if factor:
            # This gradient is gone before the next is made.
            with tf.control_dependencies(tf.nest.flatten((remainders, squares))):
                contrasts = batch.gradients(tape, contrast)
            (spreads,) = _one_by_one(
                lambda totals, gradient: (_add_squares(totals, gradient),),
                *(spreads, contrasts),
            )
        statistics = microbatching.add(statistics, batch.moves(after))
        return index + 1, remainders, squares, spreads, statistics

    return body


def _over_replicas(replicas, momentums, remainders):
    """The means of first moments over replicas, into all copies of their slots.

    Returns:
        What the slots could not hold; None of those that hold everything.
    """
    if replicas.count > 1:

        def mean_over_replicas(slot, remainder):
            return (_hold(slot, replicas.mean(_held(slot, remainder))),)

        (remainders,) = _one_by_one(mean_over_replicas, momentums, remainders)
    return [
        None if momentum.dtype == "float32" else remainder
        for momentum, remainder in zip(momentums, remainders, strict=True)
    ]


def put(gradients, variables, optimizer, replicas=ONE_REPLICA):
    """Whole gradients into the slots of the optimizer; as `accumulate` without it.

    Args:
        gradients: this replica's share of them, one a variable.
        variables: Keras variables.
        optimizer: `MomentOptimizer`, built.
        replicas: `Replicas` that take the step together.

    Returns:
        `(remainders, second_moments)` of the variables.
    """
    remainders, second_moments = [], []
    for gradient, variable in zip(replicas.total(gradients), variables, strict=True):
        slot, moments = optimizer.slots(variable)
        first, second = optimizer.moments_after(
            gradient, slot.value, [moment.value for moment in moments]
        )
        held = tf.cast(first, slot.dtype)
        own(slot).assign(held)
        remainders.append(first - tf.cast(held, tf.float32))
        second_moments.append(second)
    return remainders, second_moments


def second_moments_after(optimizer, moments, squares, spreads, count, factor):
    """Second moments of a weight after the step.

    Args:
        optimizer: `MomentOptimizer`.
        moments: its second moments before.
        squares: sums over microbatches of the mean squares of `c_i`.
        spreads: the same of `h - h'`.
        count: K, of all replicas together.
        factor: see `correction_factor`.
    """
    estimates = [
        count * (square - factor * spread)
        for square, spread in zip(squares, spreads, strict=True)
    ]
    averages = optimizer.average(moments, estimates)
    floors = optimizer.average([tf.zeros_like(m) for m in moments], squares)
    return tuple(map(tf.maximum, averages, floors))


def decay_slot(slot, beta_1):
    """`slot <- beta_1 * slot`; returns what it could not hold, as `add_to_slot`."""
    if slot.dtype == "float32":
        own(slot).assign(beta_1 * slot.value)
        return tf.zeros(())
    return _hold(slot, beta_1 * tf.cast(slot.value, tf.float32))


def add_to_slot(slot, remainder, part):
    """`slot <- slot + remainder + part`; returns what it could not hold.

    Args:
        slot: Keras variable of a first moment.
        remainder: what it could not hold before, of its shape and dtype. For a float32
            slot a scalar that stands for nothing.
        part: float32.
    """
    if slot.dtype == "float32":
        # What comes after the remainder comes after the assignment.
        with tf.control_dependencies([own(slot).assign_add(part)]):
            return tf.identity(remainder)
    return _hold(slot, _held(slot, remainder) + part)


def _held(slot, remainder):
    """A first moment, float32, from its slot and what that could not hold."""
    return tf.cast(slot.value, tf.float32) + tf.cast(remainder, tf.float32)


def _hold(slot, total):
    """`slot <- total`; returns what it could not hold, as `add_to_slot`."""
    held = tf.cast(total, slot.dtype)
    own(slot).assign(held)
    return tf.cast(total - tf.cast(held, tf.float32), slot.dtype)


def _signs(size):
    """`[size, 1]`: 1 for the first half of a microbatch, -1 for the second."""
    return tf.where(tf.range(size) < size // 2, 1.0, -1.0)[:, tf.newaxis]


def _one_by_one(function, *columns):
    """`function` of each row of the columns, one after another; columns of its results.

    From the last weight on, in the order of the backward pass, so that a gradient is
    gone soon; side by side, rows would hold temporary copies of many weights.
    """
    rows, previous = [], []
    for row in reversed(list(zip(*columns, strict=True))):
        with tf.control_dependencies(previous):
            rows.append(function(*row))
        previous = tf.nest.flatten(rows[-1])
    return (list(column) for column in zip(*reversed(rows), strict=True))


def _add_squares(totals, gradient):
    """Adds the mean squares of a gradient to a tuple of totals."""
    return tuple(microbatching.add(totals, mean_squares(gradient, len(totals))))
