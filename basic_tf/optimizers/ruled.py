"""What our optimizers share: decay and learning rates by rules over variable paths."""

import keras
import tensorflow as tf

from basic_tf import replicas
from basic_tf.optimizers import groups


class RuledOptimizer(keras.optimizers.Optimizer):
    """Base of optimizers under a table of rules.

    Subclasses say in `after` what a step makes of values. Keras's `apply` and our
    `step` do it to variables.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        decay: lambda of the weight decay.
        rules: see `groups.match_rules`; every variable must match exactly one.

    Raises:
        ValueError: for Keras's options of the same purpose, and for those that a step
            of values does not heed; when built, for a variable that does not match
            exactly one rule, is not trained by it, or has a constraint.
    """

    def __init__(self, learning_rate, decay=0.0, rules=groups.ONE_RULE, **kwargs):
        for option in ("weight_decay", "gradient_accumulation_steps"):
            if kwargs.get(option) is not None:
                raise ValueError(
                    f"{option} is Keras's, for all variables alike; use decay, rules "
                    "and microbatches"
                )
        for option in ("use_ema", "loss_scale_factor"):
            if kwargs.get(option):
                raise ValueError(f"{option} has no place in this step; leave it out")
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.decay = decay
        self.rules = tuple((pattern, dict(fields)) for pattern, fields in rules)

    def build(self, variables):
        if self.built:
            return
        rules = groups.match_rules(variables, self.rules)
        for variable, rule in zip(variables, rules, strict=True):
            if not rule.train:
                raise ValueError(f"{variable.path} is not trained, by its rule")
            if variable.constraint is not None:
                raise ValueError(
                    f"{variable.path} has a constraint, which a step would not keep"
                )
        super().build(variables)
        self._decays = [
            self.decay * rule.decay if is_weight(variable) else 0.0
            for variable, rule in zip(variables, rules, strict=True)
        ]
        self._rates = [rule.learning_rate for rule in rules]
        self.slot_axes = {}  # by the id of a slot: that of its variable, and its axes
        self._indices = {id(v): index for index, v in enumerate(variables)}
        self._slots = [tuple(self.add_slots(variable)) for variable in variables]

    def add_slots(self, variable):
        """Adds the optimizer's own variables beside one; an iterable of them."""
        raise NotImplementedError

    def add_slot(self, variable, slot, axes=None, dtype="float32"):
        """A variable of zeros beside `variable`.

        Args:
            slot: its name.
            axes: those of the variable that it has, from 0; all where None.
        """
        axes = tuple(range(len(variable.shape))) if axes is None else tuple(axes)
        shape = tuple(variable.shape[axis] for axis in axes)
        name = f"{variable.path.replace('/', '_')}_{slot}"
        added = self.add_variable(shape, dtype=dtype, name=name)
        self.slot_axes[id(added)] = id(variable), axes
        return added

    def after(self, index, weight, slots, gradient, learning_rate, step):
        """A variable's values after a step, from those before it. Assigns nothing.

        Args:
            index: of the variable, among those that the optimizer was built with.
            weight: its value, float32.
            slots: the values of its slots, in their own dtypes.
            gradient: of its shape, float32.
            learning_rate: float32 scalar.
            step: the step that it is, from 1; float32 scalar.

        Returns:
            `(weight, slots)`.
        """
        raise NotImplementedError

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        held = [variable, *self._slots[index]]
        after = self._after(index, held, gradient, learning_rate, self._next_step())
        for each, value in zip(held, after, strict=True):
            self.assign(each, value)

    def step(self, condition, gradients, variables):
        """A step where a condition holds; else no weight, slot or iteration moves.

        Every value is read before any is written, and Keras variables alone are
        assigned: what a step as a function of values needs (`keras.StatelessScope`).

        Args:
            condition: bool scalar, the same on all replicas.
            gradients: dense, of this replica; they sum to those of the batch.
            variables: Keras variables, of those that the optimizer was built with.
        """
        gradients = self._clip(replicas.current().total(gradients))
        scalars = [condition, self._get_current_learning_rate(), self._next_step()]
        moves = []
        for gradient, variable in zip(gradients, variables, strict=True):
            condition_here, *rates = self.beside(variable, scalars)
            index = self._indices[id(variable)]
            held = [variable, *self._slots[index]]
            after = self._after(index, held, gradient, *rates)
            moves += [
                (each, choose(condition_here, new, each.value))
                for each, new in zip(held, after, strict=True)
            ]
        self.iterations.assign_add(tf.cast(condition, self.iterations.dtype))
        for each, new in moves:
            each.assign(new)

    def beside(self, variable, scalars):
        """Scalars, where a step on this variable can read them."""
        return scalars

    def _next_step(self):
        return tf.cast(self.iterations.value + 1, tf.float32)

    def _after(self, index, held, gradient, learning_rate, step):
        """The values of a variable and its slots, `held`, after a step."""
        weight, *slots = [tf.convert_to_tensor(each) for each in held]
        weight, slots = self.after(
            index,
            tf.cast(weight, tf.float32),
            slots,
            tf.cast(tf.convert_to_tensor(gradient), tf.float32),
            tf.cast(learning_rate, tf.float32),
            step,
        )
        return [weight, *slots]

    def _clip(self, gradients):
        """What Keras's options say, of the gradients of all replicas together."""
        if self.clipnorm:
            return [tf.clip_by_norm(gradient, self.clipnorm) for gradient in gradients]
        if self.global_clipnorm:
            return tf.clip_by_global_norm(gradients, self.global_clipnorm)[0]
        if self.clipvalue:
            limit = self.clipvalue
            return [tf.clip_by_value(g, -limit, limit) for g in gradients]
        return gradients

    def get_config(self):
        return super().get_config() | {"decay": self.decay, "rules": self.rules}


def choose(condition, new, old):
    """`new` where a scalar condition holds, else `old`, in the dtype of `old`."""
    # DTensor crashes where the ranks differ.
    condition = tf.reshape(condition, (1,) * len(old.shape))
    return tf.where(condition, tf.cast(new, old.dtype), old)


def is_weight(variable):
    """Whether a variable decays: not a gain, a bias or the log-scale."""
    return len(variable.shape) >= 2
