"""AdamW (Loshchilov & Hutter 2019), as CLIP trains."""

import keras
import tensorflow as tf

from basic_tf.optimizers import groups
from basic_tf.optimizers.moments import MomentOptimizer


@keras.saving.register_keras_serializable("basic_tf")
class AdamW(MomentOptimizer):
    """Adam with decoupled decay, under a table of rules, for slot accumulation, too.

    Keras's own `AdamW` has one decay for all variables.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        decay: lambda of the decoupled weight decay; of weights of two axes and more.
        rules: see `groups.match_rules`; every variable must match exactly one.
        epsilon: added to the root of the second moment.
        momentum_dtype: storage of the first moment.

    Raises:
        ValueError: when built, for a variable that does not match exactly one rule.

    Example:
        >>> AdamW(learning_rate=5e-4, beta_2=0.98, epsilon=1e-6, decay=0.2).decay
        0.2

    Source: Loshchilov & Hutter 2019, algorithm 2.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        beta_1=0.9,
        beta_2=0.999,
        decay=0.0,
        rules=groups.ONE_RULE,
        epsilon=1e-8,
        momentum_dtype="float32",
        name="adamw",
        **kwargs,
    ):
        super().__init__(
            beta_1,
            beta_2,
            momentum_dtype,
            learning_rate=learning_rate,
            decay=decay,
            rules=rules,
            name=name,
            **kwargs,
        )
        self.epsilon = epsilon

    def direction(self, first, second, step):
        first = first / (1 - tf.pow(self.beta_1, step))
        second = second[0] / (1 - tf.pow(self.beta_2, step))
        return first / (tf.sqrt(second) + self.epsilon)

    def get_config(self):
        return super().get_config() | {"epsilon": self.epsilon}
