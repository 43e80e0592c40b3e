"""Batch norm over the whole batch, while the batch goes through in microbatches.

The moments of a batch-norm layer are means over microbatches of something that depends
on the weights and on the moments of earlier layers alone. So "all moments from all
moments", repeated as often as there are layers, ends in the exact ones, wherever it
starts; and the gradients by the moments, through which every example acts on every
other, end in the exact ones after as many repetitions backwards. With L layers a step
costs L + 1 forward passes, and L forward and backward ones, beyond Algorithm 1.
"""

import copy

import tensorflow as tf

from basic_tf import slices
from basic_tf.replicas import ONE_REPLICA
from basic_tf.training import microbatching


def encode(encoder, inputs, microbatch_size, step, replicas=ONE_REPLICA):
    """`microbatching.encode`, but equal to the step that has the batch in one piece.

    Arguments, result and errors are as there.

    Raises:
        ValueError: also for a batch norm with `renorm`, with a mask, or called twice.
    """
    batch = _Batch(encoder, inputs, microbatch_size, step, replicas)
    if batch.num_everywhere == 1 or not batch.layers or not encoder.is_trained:
        return microbatching.encode(encoder, inputs, microbatch_size, step, replicas)
    batch = batch.with_moments(batch.find_moments())
    return microbatching.Pass(batch.embed(), batch.backward)


class _Batch(microbatching.Batch):
    """A batch whose batch norms take the moments of the whole batch as given.

    `moments` is a list of `[2, C]`, one a layer: mean and variance of its input over
    examples and positions.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.layers = [layer for layer in self.encoder.batch_norms if layer.trainable]
        for layer in self.layers:
            if layer.renorm:
                raise ValueError(f"{layer.path} has renorm; batch_norm global has not")
        self.moments = [
            tf.stack([layer.moving_mean.value, layer.moving_variance.value])
            for layer in self.layers
        ]
        self.num_everywhere = self.num_microbatches * self.replicas.count

    def with_moments(self, moments):
        """This batch with other moments."""
        batch = copy.copy(self)
        batch.moments = moments
        return batch

    def forward(self, index):
        """Embeddings `[M, D]` of a microbatch, and its own moments.

        Those have in place of the variance the mean square about the given mean, which
        is the variance where the given mean is that of the batch.
        """
        found = [None] * len(self.layers)

        def call(layer, own_call, inputs, training=None, mask=None):
            position = self.layers.index(layer)
            if mask is not None or found[position] is not None:
                raise ValueError(
                    f"{layer.path} has a mask or is called twice, which batch_norm "
                    "global does not take"
                )
            found[position] = _moments(inputs, layer.axis, self.moments[position][0])
            return own_call(inputs, training=False)

        embeddings, _ = self.encoder(
            self.weights,
            self.normalizing_statistics(),
            self.inputs.part(index),
            self.step,
            self.number(index),
            stand_ins=[(self.layers, call)],
        )
        return embeddings, found

    def find_moments(self):
        """Moments of the batch of all replicas, for every layer."""

        def better(moments):
            batch = self.with_moments(moments)

            def add_share(index, sums):
                _, moments = batch.forward(index)
                shares = [value / batch.num_microbatches for value in moments]
                return index + 1, microbatching.add(sums, shares)

            means = self.replicas.mean(batch.loop(add_share))
            return [
                tf.stack([new[0], new[1] - tf.square(new[0] - given[0])])
                for new, given in zip(means, moments, strict=True)
            ]

        # Once more than there are layers, for squares about the mean itself.
        return self.repeat(len(self.layers) + 1, better, self.moments)

    def backward(self, gradients):
        """`Pass.backward`."""

        def objective(index, embeddings, moments, by_moments):
            value = self.product(embeddings, gradients, index)
            for moment, gradient in zip(moments, by_moments, strict=True):
                value += tf.reduce_sum(moment * gradient) / self.num_everywhere
            return value

        def better(by_moments):
            def add_products(index, sums):
                with microbatching.watching(self.moments) as tape:
                    value = objective(index, *self.forward(index), by_moments)
                products = tape.gradient(value, self.moments)
                return index + 1, microbatching.add(sums, products)

            return self.replicas.total(self.loop(add_products))

        by_moments = self.repeat(len(self.layers), better, self.start())
        weight_gradients, _, _ = self.accumulate(
            lambda *microbatch: (objective(*microbatch, by_moments), ())
        )
        return weight_gradients, self.statistics_after()

    def start(self):
        return [tf.zeros_like(moment) for moment in self.moments]

    def loop(self, body):
        """Runs `body(index, sums)` over the microbatches; the sums."""
        (sums,) = slices.repeat(self.num_microbatches, body, self.start())
        return sums

    def repeat(self, count, better, values):
        """Applies `better` to the values `count` times."""
        if self.replicas.count == 1:
            return slices.repeat(count, lambda i, v: (i + 1, better(v)), values)[0]
        for _ in range(count):  # a loop of the graph could not sum over replicas
            values = better(values)
        return values

    def normalizing_statistics(self):
        """`statistics` with the moments in place of the moving averages."""
        values = {}
        for layer, moment in zip(self.layers, self.moments, strict=True):
            values[id(layer.moving_mean)], values[id(layer.moving_variance)] = (
                tf.unstack(moment)
            )
        return self._replaced(values)

    def statistics_after(self):
        """One step of the moving averages towards the moments of the whole batch."""
        values = {}
        for layer, moment in zip(self.layers, self.moments, strict=True):
            averages = (layer.moving_mean, layer.moving_variance)
            for variable, new in zip(averages, tf.unstack(moment), strict=True):
                old = tf.convert_to_tensor(variable.value)
                values[id(variable)] = old + (1 - layer.momentum) * (new - old)
        return self._replaced(values)

    def _replaced(self, values):
        pairs = zip(self.encoder.statistics, self.statistics, strict=True)
        return [values.get(id(variable), value) for variable, value in pairs]


def _moments(inputs, axis, mean):
    """`[2, C]`: mean of the inputs, and mean of their square about a constant."""
    inputs = tf.cast(inputs, tf.float32)
    rank = len(inputs.shape)
    axes = [other for other in range(rank) if other != axis % rank]
    squares = tf.square(inputs - tf.stop_gradient(mean))
    return tf.stack([tf.reduce_mean(inputs, axes), tf.reduce_mean(squares, axes)])
