"""LARS (You et al. 2017), as SimCLR trains."""

import keras
import tensorflow as tf

from basic_tf.optimizers import groups
from basic_tf.optimizers.ruled import RuledOptimizer, is_weight


@keras.saving.register_keras_serializable("basic_tf")
class LARS(RuledOptimizer):
    """Momentum SGD whose rate follows the norm of each weight over its gradient's.

    `g <- g + lambda w`; `v <- momentum v + lr * eta * |w| / |g| * g`; `w <- w - v`. The
    decay goes through the gradient here, and the norm is that of both together, as in
    SimCLR (You et al. add the norms). Gains, biases and the log-scale take plain steps
    of momentum SGD without decay.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        momentum: of the velocity.
        decay: lambda of the weight decay.
        rules: see `groups.match_rules`; every variable must match exactly one.
        trust_coefficient: eta.

    Raises:
        ValueError: when built, for a variable that does not match exactly one rule.

    Example:
        >>> LARS(learning_rate=0.3, decay=1e-6).momentum
        0.9

    Source: You et al. 2017, algorithm 1; SimCLR section 3.
    """

    def __init__(
        self,
        learning_rate=0.1,
        momentum=0.9,
        decay=0.0,
        rules=groups.ONE_RULE,
        trust_coefficient=1e-3,
        name="lars",
        **kwargs,
    ):
        super().__init__(learning_rate, decay, rules, name=name, **kwargs)
        self.momentum = momentum
        self.trust_coefficient = trust_coefficient

    def add_slots(self, variable):
        yield self.add_slot(variable, "velocity")

    def after(self, index, weight, slots, gradient, learning_rate, step):
        (velocity,) = slots
        rate = self._rates[index] * learning_rate
        if is_weight(weight):
            gradient += self._decays[index] * weight
            rate *= self._trust(tf.norm(weight), tf.norm(gradient))
        velocity = self.momentum * velocity + rate * gradient
        return weight - velocity, (velocity,)

    def _trust(self, weight_norm, gradient_norm):
        ratio = tf.math.divide_no_nan(weight_norm, gradient_norm)
        return tf.where(ratio > 0, self.trust_coefficient * ratio, 1.0)

    def get_config(self):
        return super().get_config() | {
            "momentum": self.momentum,
            "trust_coefficient": self.trust_coefficient,
        }
