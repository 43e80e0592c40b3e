"""Batch norm over the whole batch, while the batch goes through in microbatches.

The moments of a batch-norm layer are means over microbatches of something that depends
on the weights and on the moments of earlier layers alone. So "all moments from all
moments", repeated as often as there are layers, ends in the exact ones, wherever it
starts; and the gradients by the moments, through which every example acts on every
other, end in the exact ones after as many repetitions backwards. With L layers a step
costs L forward passes, and L forward and backward ones, beyond Algorithm 1.
"""

import copy

import tensorflow as tf

from basic_tf.training import microbatching


def run(encoder, inputs, microbatch_size, step, first_microbatch=0):
    """`microbatching.run`, but equal to the step that has the batch in one piece.

    Arguments, result and errors are as there.
    """
    batch = _Batch(encoder, inputs, microbatch_size, step, first_microbatch)
    if batch.num_microbatches == 1:
        return batch.plain_pass()
    batch = batch.with_moments(batch.find_moments())
    return microbatching.Pass(batch.embed(), batch.backward)


class _Batch(microbatching.Batch):
    """A batch whose batch norms take the moments of the whole batch as given.

    `moments` is a list of `[2, C]`, one a layer: the mean of its input over examples
    and positions, and the mean of its square about the moving mean (about 0 it would
    lose digits).
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.layers = self.encoder.batch_norms
        self.centers = [tf.identity(layer.moving_mean.value) for layer in self.layers]
        self.moments = None  # each microbatch takes its own

    def with_moments(self, moments):
        batch = copy.copy(self)
        batch.moments = moments
        return batch

    def forward(self, index):
        """Embeddings of a microbatch; its own moments, or the statistics after it."""
        if self.moments is None:
            return super().forward(index)
        found = {}

        def call(layer, own_call, inputs, training=None, **options):
            position = self.layers.index(layer)
            found[position] = _moments(inputs, layer.axis, self.centers[position])
            return own_call(inputs, training=False, **options)

        embeddings, _ = self.encoder(
            self.weights,
            self.normalizing_statistics(),
            microbatching.take(self.inputs, index, self.microbatch_size),
            self.step,
            self.first_microbatch + index,
            batch_norm_call=call,
        )
        return embeddings, [found[position] for position in range(len(self.layers))]

    def find_moments(self):
        def better(repetition, moments):
            batch = self.with_moments(moments)

            def add_share(index, sums):
                _, moments = batch.forward(index)
                shares = [value / batch.num_microbatches for value in moments]
                return index + 1, microbatching.add(sums, shares)

            return repetition + 1, *batch.loop(add_share)

        start = [
            tf.stack([layer.moving_mean.value, layer.moving_variance.value])
            for layer in self.layers
        ]
        return microbatching.loop(len(self.layers), better, start)[0]

    def backward(self, gradients):
        def objective(index, embeddings, moments, by_moments):
            value = self.product(embeddings, gradients, index)
            for moment, gradient in zip(moments, by_moments, strict=True):
                value += tf.reduce_sum(moment * gradient) / self.num_microbatches
            return value

        def better(repetition, by_moments):
            def add_products(index, sums):
                with microbatching.watching(self.moments) as tape:
                    value = objective(index, *self.forward(index), by_moments)
                products = tape.gradient(value, self.moments)
                return index + 1, microbatching.add(sums, products)

            return repetition + 1, *self.loop(add_products)

        (by_moments,) = microbatching.loop(
            len(self.layers), better, self.no_statistics()
        )
        weight_gradients, _, _ = self.accumulate(
            lambda *microbatch: (objective(*microbatch, by_moments), ())
        )
        return weight_gradients, self.statistics_after()

    def no_statistics(self):
        return [tf.zeros((2, *center.shape)) for center in self.centers]

    def loop(self, body):
        return microbatching.loop(self.num_microbatches, body, self.no_statistics())

    def normalizing_statistics(self):
        """`statistics` with the moments in place of the moving averages."""
        values = {}
        for layer, center, moment in zip(
            self.layers, self.centers, self.moments, strict=True
        ):
            mean, square = tf.unstack(moment)
            values[id(layer.moving_mean)] = mean
            values[id(layer.moving_variance)] = square - tf.square(mean - center)
        return self._replaced(values)

    def statistics_after(self):
        """One step of the moving averages towards the moments of the whole batch."""
        momentum = {}
        for layer in self.layers:
            momentum[id(layer.moving_mean)] = layer.momentum
            momentum[id(layer.moving_variance)] = layer.momentum
        values = {}
        for variable, old, new in zip(
            self.encoder.statistics,
            self.statistics,
            self.normalizing_statistics(),
            strict=True,
        ):
            kept = momentum.get(id(variable), 1.0)
            values[id(variable)] = kept * old + (1 - kept) * new
        return self._replaced(values)

    def _replaced(self, values):
        return [
            values.get(id(variable), value)
            for variable, value in zip(
                self.encoder.statistics, self.statistics, strict=True
            )
        ]


def _moments(inputs, axis, center):
    """`[2, C]`: mean of the inputs, and mean of their square about `center`."""
    inputs = tf.cast(inputs, tf.float32)
    rank = len(inputs.shape)
    axes = [other for other in range(rank) if other != axis % rank]
    mean, square = (
        tf.reduce_mean(value, axes) for value in (inputs, tf.square(inputs - center))
    )
    return tf.stack([mean, square])
