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

from basic_tf import slices
from basic_tf.replicas import ONE_REPLICA
from basic_tf.training import mesh


@dataclasses.dataclass(frozen=True)
class Pass:
    """A batch on its way through an encoder.

    Attributes:
        embeddings: `[B, D]` float32.
        backward: from their gradients `[B, D]` to `(gradients, statistics)`, lists
            parallel to the encoder's `weights` and `statistics`: float32 sums over the
            batch, and the statistics after the step. To be called once.
        batch: `Batch`, for other ways back.
    """

    embeddings: tf.Tensor
    backward: Callable
    batch: "Batch | None" = None


def encode(encoder, inputs, microbatch_size, step, replicas=ONE_REPLICA):
    """Phases *embed* and, when its `backward` is called, *accumulate*.

    A microbatch as large as the batch takes the plain step: one pass, whose activations
    are kept.

    Args:
        encoder: `StatelessEncoder`.
        inputs: `[B, ...]` of this replica alone, with a static B.
        microbatch_size: M, a divisor of B; 0 for B.
        step: optimizer steps done so far, int scalar.
        replicas: `Replicas` that take the step together.

    Returns:
        `Pass`. Gradients are this replica's share, which sum to the whole ones.
        Statistics average over the microbatches of all replicas: the moving averages
        take one step towards the mean of the microbatches' own. (Ours: a step each
        would make what they remember depend on the size of the microbatches.)

    Raises:
        ValueError: for a size that does not divide B, or a weight without gradient.

    Source: BASIC section 4, algorithm 1.
    """
    batch = Batch(encoder, inputs, microbatch_size, step, replicas)
    if batch.num_microbatches == 1:
        return batch.plain_pass()

    def backward(gradients):
        def objective(index, embeddings, statistics):
            return batch.product(embeddings, gradients, index), ()

        sums, statistics, _ = batch.accumulate(objective)
        return sums, batch.over_replicas(statistics)

    return Pass(batch.embed(), backward, batch)


def run_separable(
    encoder, inputs, microbatch_size, step, loss, num_metrics=0, replicas=ONE_REPLICA
):
    """Gradients of a loss that is a mean over examples, in one pass.

    Args:
        encoder, inputs, microbatch_size, step, replicas: see `encode`.
        loss: `(index, embeddings [M, D]) -> (mean loss, metrics)` of a microbatch.
        num_metrics: number of its metrics, scalars that are means over examples.

    Returns:
        `(gradients, statistics, metrics)`: gradients as this replica's share of those
        of the batch of all replicas, metrics of this replica's batch.

    Raises:
        ValueError: as `encode`.
    """
    batch = Batch(encoder, inputs, microbatch_size, step, replicas)
    share = 1 / batch.num_microbatches

    def objective(index, embeddings, statistics):
        value, metrics = loss(index, embeddings)
        return value * share / replicas.count, [share * metric for metric in metrics]

    gradients, statistics, metrics = batch.accumulate(objective, num_metrics)
    return gradients, batch.over_replicas(statistics), metrics


class Batch:
    """A batch in K microbatches, with the values that its step starts from."""

    def __init__(self, encoder, inputs, microbatch_size, step, replicas):
        self.encoder = encoder
        self.inputs = as_parts(inputs, microbatch_size)
        self.num_microbatches, self.microbatch_size = self.inputs.values.shape[:2]
        self.batch_size = self.num_microbatches * self.microbatch_size
        self.step, self.replicas = step, replicas
        self.weights, self.statistics = encoder.values()

    def forward(self, index):
        """Embeddings `[M, D]` of a microbatch, and the statistics after it."""
        return self.encoder(
            self.weights,
            self.statistics,
            self.inputs.part(index),
            self.step,
            self.number(index),
        )

    def take(self, values, index):
        """Microbatch `index` of `[B, ...]`."""
        if self.num_microbatches == 1:
            return values
        return slices.take(values, index, self.microbatch_size)

    def number(self, index):
        """Index of a microbatch in the batch of all replicas."""
        return self.replicas.index * self.num_microbatches + index

    def plain_pass(self):
        """The `Pass` of a batch in one piece."""
        with watching(self.weights) as tape:
            embeddings, statistics = self.forward(0)

        def backward(gradients):
            gradients = self.gradients(tape, embeddings, gradients)
            return gradients, self.over_replicas(statistics)

        return Pass(embeddings, backward, self)

    def embed(self):
        """Embeddings `[B, D]`, a microbatch at a time."""

        def body(index, embeddings):
            embedding, _ = self.forward(index)
            return index + 1, embeddings.write(index, embedding)

        element_shape = None
        if mesh.current():  # DTensor needs to know it
            element_shape = self.microbatch_size, self.encoder.embedding_dim
        embeddings = tf.TensorArray(
            tf.float32, self.num_microbatches, element_shape=element_shape
        )
        (embeddings,) = slices.repeat(self.num_microbatches, body, embeddings)
        if mesh.current():  # DTensor has no other way out of the array
            parts = [embeddings.read(k) for k in range(self.num_microbatches)]
            embeddings = tf.concat(parts, 0)
        else:
            embeddings = embeddings.concat()
        return tf.ensure_shape(embeddings, (self.batch_size, embeddings.shape[-1]))

    def product(self, embeddings, gradients, index):
        """A scalar whose gradient is the vector-Jacobian product with `gradients`."""
        return tf.reduce_sum(embeddings * self.take(gradients, index))

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
            return self.gradients(tape, value), statistics, list(metrics)

        if self.num_microbatches == 1:
            return microbatch(0)

        def body(index, gradients, statistics, metrics):
            more_gradients, after, more_metrics = microbatch(index)
            return (
                index + 1,
                add(gradients, more_gradients),
                add(statistics, self.moves(after)),
                add(metrics, more_metrics),
            )

        return slices.repeat(
            self.num_microbatches,
            body,
            [tf.zeros(weight.shape) for weight in self.weights],
            self.start(),
            [tf.zeros(())] * num_metrics,
        )

    def moves(self, after):
        """A microbatch's share of how far the statistics of all of them move."""
        # Differences, so that what no microbatch moves keeps every bit.
        pairs = zip(after, self.start(), strict=True)
        return [(new - old) / self.num_microbatches for new, old in pairs]

    def over_replicas(self, statistics):
        """The mean of their statistics; what none of them moves keeps every bit."""
        if self.replicas.count == 1:
            return statistics
        pairs = zip(statistics, self.statistics, strict=True)
        moves = self.replicas.mean([new - old for new, old in pairs])
        return add(self.statistics, moves)

    def start(self):
        """What the statistics of `forward` are before any microbatch."""
        return self.statistics

    def gradients(self, tape, target, output_gradients=None):
        """Float32 and dense, one a weight."""
        gradients = tape.gradient(target, self.weights, output_gradients)
        missing = [
            weight.path
            for weight, gradient in zip(self.encoder.weights, gradients, strict=True)
            if gradient is None
        ]
        if missing:
            raise ValueError(
                f"the loss does not depend on {', '.join(missing)}: freeze by a rule"
            )
        gradients = [tf.cast(tf.convert_to_tensor(g), tf.float32) for g in gradients]
        return list(map(mesh.here, self.encoder.weights, gradients))


def as_parts(inputs, microbatch_size):
    """`[B, ...]` in microbatches, as `slices.Parts`.

    Raises:
        ValueError: if B is not known, or `microbatch_size` does not divide it.
    """
    if isinstance(inputs, slices.Parts):
        return inputs
    batch_size = inputs.shape[0]
    if batch_size is None:
        raise ValueError("a step needs a batch of a static size: drop a remainder")
    check_size("microbatch size", microbatch_size, batch_size)
    return slices.split(inputs, microbatch_size or batch_size)


@contextlib.contextmanager
def watching(tensors, persistent=False):
    """A tape that watches these tensors and nothing else."""
    with tf.GradientTape(persistent, watch_accessed_variables=False) as tape:
        tape.watch(tensors)
        yield tape


def add(sums, parts):
    """Sums of two lists, entry by entry."""
    return [a + b for a, b in zip(sums, parts, strict=True)]


def check_size(name, microbatch_size, batch_size, of=""):
    """Refuses a microbatch that does not divide its batch.

    Args:
        name: what to call the size in the message.
        microbatch_size: M; 0 stands for the batch size.
        batch_size: B.
        of: whose batch that is, for the message.

    Raises:
        ValueError: naming the nearest sizes that would do.
    """
    divisors = slices.divisors(batch_size)
    if microbatch_size in (0, *divisors):
        return
    raise ValueError(
        f"{name} {microbatch_size} does not divide batch size {batch_size}{of}; "
        f"use one of {slices.nearest(divisors, microbatch_size)}"
    )
