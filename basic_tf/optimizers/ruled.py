"""What our optimizers share: decay and learning rates by rules over variable paths."""

import keras
import tensorflow as tf

from basic_tf.optimizers import groups


class RuledOptimizer(keras.optimizers.Optimizer):
    """Base of optimizers with decoupled decay under a table of rules.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        decay: lambda of the weight decay.
        rules: see `groups.match_rules`; every variable must match exactly one.

    Raises:
        ValueError: when built, for a variable that does not match exactly one rule.
    """

    def __init__(self, learning_rate, decay=0.0, rules=groups.ONE_RULE, **kwargs):
        # Keras's own weight_decay is one number for all variables: not handed on.
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.decay = decay
        self.rules = tuple((pattern, dict(fields)) for pattern, fields in rules)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        rules = groups.match_rules(variables, self.rules)
        self._decays = [
            self.decay * rule.decay if is_weight(variable) else 0.0
            for variable, rule in zip(variables, rules, strict=True)
        ]
        self._rates = [rule.learning_rate for rule in rules]
        self.add_slots(variables)

    def add_slots(self, variables):
        """Adds the optimizer's own variables."""
        raise NotImplementedError

    def add_slot(self, variable, slot, shape=None, dtype="float32"):
        """A variable of zeros beside `variable`, of its shape if none is given."""
        shape = tuple(variable.shape) if shape is None else shape
        name = f"{variable.path.replace('/', '_')}_{slot}"
        return self.add_variable(shape, dtype=dtype, name=name)

    def descend(self, variable, update, learning_rate):
        """`w <- w - lr * (update + lambda * w)`."""
        index = self._get_variable_index(variable)
        weight = tf.cast(tf.convert_to_tensor(variable), tf.float32)
        rate = self._rates[index] * tf.cast(learning_rate, tf.float32)
        delta = rate * (update + self._decays[index] * weight)
        self.assign_sub(variable, tf.cast(delta, variable.dtype))

    def get_config(self):
        return super().get_config() | {"decay": self.decay, "rules": self.rules}


def is_weight(variable):
    """Whether a variable decays: not a gain, a bias or the log-scale."""
    return len(variable.shape) >= 2
