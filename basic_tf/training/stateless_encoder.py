"""An encoder as a function of values, so that a batch can go through it in parts."""

import keras
import tensorflow as tf

from basic_tf.training import dtensor_layers, mesh
from basic_tf.training import rematerialization as remat
from basic_tf.training.stateless_layers import ValuesScope, calling

BATCH_NORM_MODES = ("microbatch", "frozen", "global")


class StatelessEncoder:
    """`encode` as a function of weights, statistics, step and microbatch.

    Nothing is assigned. Every random mask is drawn from (seed, step, microbatch, layer)
    alone, so that a second pass over a microbatch computes the same function as the
    first, and a later step another one. Losses that layers add are not counted.

    Args:
        encode: `(inputs, training) -> [M, D]` float32, through `encoder`.
        encoder: built Keras model. `statistics` are its weights that no gradient
            trains.
        weights: variables that `encode` reads and that are trained; without one of the
            encoder's own, that runs as in inference.
        seed: int.
        batch_norm: "microbatch" normalises a microbatch with its own statistics;
            "frozen" with the moving averages, which stay; "global" with those of the
            whole batch, see `global_batch_norm`.
        rematerialization: what the backward pass computes again, see
            `rematerialization`.

    Raises:
        ValueError: for another `batch_norm` or `rematerialization`, or for two that do
            not go together.
    """

    def __init__(
        self,
        encode,
        encoder,
        weights,
        seed=0,
        batch_norm="microbatch",
        rematerialization="none",
    ):
        if batch_norm not in BATCH_NORM_MODES:
            raise ValueError(
                f"batch_norm {batch_norm!r} is none of {', '.join(BATCH_NORM_MODES)}"
            )
        if batch_norm == "global" and rematerialization != "none":
            raise ValueError(
                f"batch_norm global needs rematerialization none, not "
                f"{rematerialization}"
            )
        self._encode = encode
        self._encoder = encoder
        self.weights = list(weights)
        own = {id(variable) for variable in encoder.trainable_variables}
        self.is_trained = any(id(variable) in own for variable in self.weights)
        trained = {id(variable) for variable in self.weights}
        self._frozen = [v for v in encoder.trainable_variables if id(v) not in trained]
        self.batch_norm = batch_norm
        self._seed = seed
        of_weights = {id(variable) for variable in encoder.non_trainable_weights}
        others = encoder.non_trainable_variables
        self.statistics = [v for v in others if id(v) in of_weights]
        # What is neither trained nor a statistic is the state of a seed generator.
        self._seed_states = [v for v in others if id(v) not in of_weights]
        self.batch_norms = [
            layer
            for layer in encoder._flatten_layers()
            if isinstance(layer, keras.layers.BatchNormalization)
        ]
        self._stand_ins = []
        if batch_norm == "frozen":
            self._stand_ins.append((self.batch_norms, _call_in_inference))
        self._rematerialized = remat.stand_ins(encoder, rematerialization)

    @property
    def embedding_dim(self):
        """D, where the encoder tells."""
        return getattr(self._encoder, "embedding_dim", None)

    def values(self):
        """Current values of the weights and of the statistics, two lists."""
        return [
            [tf.convert_to_tensor(variable.value) for variable in variables]
            for variables in (self.weights, self.statistics)
        ]

    def __call__(self, weights, statistics, inputs, step, microbatch, stand_ins=()):
        """Encodes a microbatch.

        Args:
            weights: values in place of those of `self.weights`.
            statistics: values in place of those of `self.statistics`.
            inputs: `[M, ...]`.
            step: optimizer steps done so far, int scalar.
            microbatch: its index in the batch of all replicas, int scalar.
            stand_ins: see `stateless_layers.calling`.

        Returns:
            `(embeddings, statistics)`: `[M, D]`, and the statistics after it.

        Raises:
            ValueError: for a layer that assigns what the encoder does not own, such as
                the seed that all layers without a seed generator share.
        """
        mapping = [
            *zip(self.weights, weights, strict=True),
            *zip(self.statistics, statistics, strict=True),
            *((variable, variable.value) for variable in self._frozen),
            *self._seeds(step, microbatch),
        ]
        stand_ins = [*self._stand_ins, *stand_ins]
        if mesh.current():
            stand_ins += dtensor_layers.stand_ins(self._encoder, mesh.current())
        stand_ins = stand_ins + self._rematerialized(stand_ins)
        with ValuesScope(mapping) as scope, calling(stand_ins):
            embeddings = self._encode(inputs, self.is_trained)
        if len(scope.state_mapping) > len(mapping):
            raise ValueError(
                f"a layer of {self._encoder.name} assigns a variable that is not its "
                "own; one that draws random values needs its own "
                "keras.random.SeedGenerator"
            )
        if mesh.current():
            embeddings = mesh.current().gather_examples(embeddings)
        return embeddings, scope.values(self.statistics)

    def _seeds(self, step, microbatch):
        if not self._seed_states:
            return []
        key = tf.constant([self._seed, len(self._seed_states)], tf.int64)
        for part in (step, microbatch):
            key = tf.random.experimental.stateless_fold_in(
                key, tf.cast(part, tf.int64), alg="philox"
            )
        keys = tf.random.experimental.stateless_split(
            key, len(self._seed_states), alg="philox"
        )
        return [
            (state, tf.cast(value, state.dtype))
            for state, value in zip(self._seed_states, tf.unstack(keys), strict=True)
        ]


def _call_in_inference(layer, call, inputs, training=None, **kwargs):
    return call(inputs, training=False, **kwargs)
