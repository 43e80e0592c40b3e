"""What our optimizers share: decay and learning rates by rules over variable paths."""

import keras
import tensorflow as tf

from basic_tf.optimizers import groups


class RuledOptimizer(keras.optimizers.Optimizer):
    """Base of optimizers under a table of rules.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        decay: lambda of the weight decay.
        rules: see `groups.match_rules`; every variable must match exactly one.

    Raises:
        ValueError: for Keras's options of the same purpose; when built, for a variable
            that does not match exactly one rule, or is not trained by it, and for
            clipping on several replicas, which Keras does to the share of each.
    """

    def __init__(self, learning_rate, decay=0.0, rules=groups.ONE_RULE, **kwargs):
        for option in ("weight_decay", "gradient_accumulation_steps"):
            if kwargs.get(option) is not None:
                raise ValueError(
                    f"{option} is Keras's, for all variables alike; use decay, rules "
                    "and microbatches"
                )
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.decay = decay
        self.rules = tuple((pattern, dict(fields)) for pattern, fields in rules)
        self._condition = None  # of the step that is being taken

    def build(self, variables):
        if self.built:
            return
        replicated = tf.distribute.get_strategy().num_replicas_in_sync > 1
        for option in ("clipnorm", "global_clipnorm", "clipvalue"):
            if replicated and getattr(self, option):
                raise ValueError(f"{option} would clip each replica's share: leave it")
        rules = groups.match_rules(variables, self.rules)
        for variable, rule in zip(variables, rules, strict=True):
            if not rule.train:
                raise ValueError(f"{variable.path} is not trained, by its rule")
        super().build(variables)
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

    def apply_if(self, condition, gradients, variables):
        """`apply` where a condition holds; else no weight, slot or iteration moves.

        (Keras's own moving averages of the weights, `use_ema`, do.)

        Args:
            condition: bool scalar, the same on all replicas.
            gradients, variables: as for `apply`.
        """
        iterations = tf.identity(self.iterations.value)
        self._condition = condition
        try:
            self.apply(gradients, variables)
        finally:
            self._condition = None
        self.iterations.assign(tf.where(condition, self.iterations.value, iterations))

    def assign(self, variable, value):
        if self._condition is not None:
            old = tf.convert_to_tensor(variable)
            value = tf.where(self._condition, tf.cast(value, old.dtype), old)
        super().assign(variable, value)

    def assign_sub(self, variable, value):
        if self._condition is not None:
            # Zero in place of what may be NaN.
            value = tf.math.multiply_no_nan(
                value, tf.cast(self._condition, value.dtype)
            )
        super().assign_sub(variable, value)

    def get_config(self):
        return super().get_config() | {"decay": self.decay, "rules": self.rules}


def is_weight(variable):
    """Whether a variable decays: not a gain, a bias or the log-scale."""
    return len(variable.shape) >= 2
