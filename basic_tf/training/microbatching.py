"""Algorithm 1 of BASIC: contrastive gradients of a batch that does not fit in memory.

Three phases make a step: *embed* runs every microbatch forward and keeps no activation;
the caller computes the *embedding gradients* of the whole batch; *accumulate* runs
every microbatch forward again, with a tape, and adds up the vector-Jacobian products.
Memory follows the microbatch, not the batch; the price is a second forward pass.
"""

import contextlib
import dataclasses
from collections.abc import Callable

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Pass:
    """A batch on its way through an encoder.

    Attributes:
        embeddings: `[B, D]` float32.
        backward: from their gradients `[B, D]` to `(gradients, statistics)`, lists
            parallel to the encoder's `weights` and `statistics`: float32 sums over the
            batch, and the statistics after the step.
    """

    embeddings: tf.Tensor
    backward: Callable


def run(encoder, inputs, microbatch_size, step, first_microbatch=0):
    """Phases *embed* and, when its `backward` is called, *accumulate*.

    A microbatch as large as the batch takes the plain step: one pass, whose activations
    are kept.

    Args:
        encoder: `StatelessEncoder`.
        inputs: `[B, ...]`, of a static shape.
        microbatch_size: M, a divisor of B; 0 for B.
        step: optimizer steps done so far, int scalar.
        first_microbatch: index of the first microbatch in the batch of all replicas.

    Returns:
        `Pass`. Statistics average over microbatches: the moving averages take one step
        towards the mean of the K microbatches' own.

    Raises:
        ValueError: for a size that does not divide B, or a weight without gradient.

    Source: BASIC section 4, algorithm 1.
    """
    batch = Batch(encoder, inputs, microbatch_size, step, first_microbatch)
    if batch.num_microbatches == 1:
        return batch.plain_pass()

    def backward(gradients):
        def objective(index, embeddings, statistics):
            return batch.product(embeddings, gradients, index), ()

        return batch.accumulate(objective)[:2]

    return Pass(batch.embed(), backward)


def run_separable(encoder, inputs, microbatch_size, step, loss, num_metrics=0):
    """Gradients of a loss that is a mean over examples, in one pass.

    Args:
        encoder, inputs, microbatch_size, step: see `run`.
        loss: `(index, embeddings [M, D]) -> (mean loss, metrics)` of a microbatch.
        num_metrics: number of its metrics, scalars that are means over examples.

    Returns:
        `(gradients, statistics, metrics)` of the batch.

    Raises:
        ValueError: as `run`.
    """
    batch = Batch(encoder, inputs, microbatch_size, step)
    share = 1 / batch.num_microbatches

    def objective(index, embeddings, statistics):
        value, metrics = loss(index, embeddings)
        return share * value, [share * metric for metric in metrics]

    return batch.accumulate(objective, num_metrics)


class Batch:
    """A batch in K microbatches, with the values that its step starts from."""

    def __init__(self, encoder, inputs, microbatch_size, step, first_microbatch=0):
        self.encoder, self.inputs = encoder, inputs
        self.batch_size = inputs.shape[0]
        self.microbatch_size = microbatch_size or self.batch_size
        check_size("microbatch size", self.microbatch_size, self.batch_size)
        self.num_microbatches = self.batch_size // self.microbatch_size
        self.step, self.first_microbatch = step, first_microbatch
        self.weights, self.statistics = encoder.values()

    def forward(self, index):
        """Embeddings `[M, D]` of a microbatch, and the statistics after it."""
        inputs = take(self.inputs, index, self.microbatch_size)
        return self.encoder(
            self.weights,
            self.statistics,
            inputs,
            self.step,
            self.first_microbatch + index,
        )

    def plain_pass(self):
        with watching(self.weights) as tape:
            embeddings, statistics = self.forward(0)

        def backward(gradients):
            return self._gradients(tape, embeddings, gradients), statistics

        return Pass(embeddings, backward)

    def embed(self):
        def body(index, embeddings):
            embedding, _ = self.forward(index)
            return index + 1, embeddings.write(index, embedding)

        embeddings = tf.TensorArray(tf.float32, self.num_microbatches)
        (embeddings,) = loop(self.num_microbatches, body, embeddings)
        embeddings = embeddings.concat()
        return tf.ensure_shape(embeddings, (self.batch_size, embeddings.shape[-1]))

    def no_statistics(self):
        """Zeros to add the statistics of `forward` up from."""
        return [tf.zeros_like(value) for value in self.statistics]

    def product(self, embeddings, gradients, index):
        """What has the vector-Jacobian product with `gradients [B, D]` as gradient."""
        return tf.reduce_sum(embeddings * take(gradients, index, self.microbatch_size))

    def accumulate(self, objective, num_metrics=0):
        """Gradients of the sum of the objectives of all microbatches.

        Args:
            objective: `(index, embeddings, statistics) -> (scalar, metrics)`.
            num_metrics: number of its metrics.

        Returns:
            `(gradients, statistics, metrics)`: the mean of the statistics, the sum of
            the metrics.
        """

        def microbatch(index):
            with watching(self.weights) as tape:
                embeddings, statistics = self.forward(index)
                value, metrics = objective(index, embeddings, statistics)
            return self._gradients(tape, value), statistics, list(metrics)

        if self.num_microbatches == 1:
            return microbatch(0)

        def body(index, gradients, statistics, metrics):
            more_gradients, after, more_metrics = microbatch(index)
            share = 1 / self.num_microbatches
            return (
                index + 1,
                add(gradients, more_gradients),
                add(statistics, [share * value for value in after]),
                add(metrics, more_metrics),
            )

        return loop(
            self.num_microbatches,
            body,
            [tf.zeros(weight.shape) for weight in self.weights],
            self.no_statistics(),
            [tf.zeros(())] * num_metrics,
        )

    def _gradients(self, tape, target, output_gradients=None):
        """Float32 and dense, one a weight."""
        gradients = tape.gradient(target, self.weights, output_gradients)
        missing = [
            weight.path
            for weight, gradient in zip(self.encoder.weights, gradients, strict=True)
            if gradient is None
        ]
        if missing:
            raise ValueError(f"the loss does not depend on {', '.join(missing)}")
        return [tf.cast(tf.convert_to_tensor(g), tf.float32) for g in gradients]


@contextlib.contextmanager
def watching(tensors):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(tensors)
        yield tape


def add(sums, parts):
    return [a + b for a, b in zip(sums, parts, strict=True)]


def loop(num_microbatches, body, *values):
    """Runs `body(index, *values)` for each microbatch, one at a time.

    TensorFlow would run ten iterations side by side, and hold the activations of all.
    """
    return tf.while_loop(
        lambda index, *_: index < num_microbatches,
        body,
        (0, *values),
        parallel_iterations=1,
        maximum_iterations=num_microbatches,
    )[1:]


def take(batch, index, microbatch_size):
    """Microbatch `index` of `[B, ...]`, of a static shape, which XLA needs."""
    size = [microbatch_size, *batch.shape[1:]]
    begin = [index * microbatch_size] + [0] * (len(size) - 1)
    return tf.ensure_shape(tf.slice(batch, begin, size), size)


def check_size(name, microbatch_size, batch_size):
    """Refuses a microbatch that does not divide its batch.

    Args:
        name: what to call the size in the message.
        microbatch_size: M; 0 stands for the batch size.
        batch_size: B.

    Raises:
        ValueError: naming the nearest sizes that would do.
    """
    divisors = [d for d in range(1, batch_size + 1) if batch_size % d == 0]
    if microbatch_size in (0, *divisors):
        return
    nearest = sorted(divisors, key=lambda d: abs(d - microbatch_size))[:3]
    raise ValueError(
        f"{name} {microbatch_size} does not divide batch size {batch_size}; "
        f"use one of {', '.join(map(str, sorted(nearest)))}"
    )
