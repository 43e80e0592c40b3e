"""Optimizers of two moments, which gradients reach all at once or in parts."""

import tensorflow as tf

from basic_tf.optimizers.ruled import RuledOptimizer
from basic_tf.replicas import own


def mean_squares(gradient, num_moments):
    """The squares of a gradient, as its second moment keeps them.

    Args:
        gradient: float32.
        num_moments: 2 for a factored weight, else 1.

    Returns:
        `(rows, columns)`, the means over the last and the second last axis, or
        `(full,)`. Source: Shazeer & Stern 2018, algorithm 2.
    """
    squares = tf.square(gradient)
    if num_moments == 1:
        return (squares,)
    return tf.reduce_mean(squares, -1), tf.reduce_mean(squares, -2)


class MomentOptimizer(RuledOptimizer):
    """Base of Adam-like optimizers: `w <- w - lr (direction(m, v) + lambda w)`.

    Args:
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        momentum_dtype: storage of the first moment, which is cast to float32 before
            anything is computed from it.
        learning_rate, decay, rules: see `RuledOptimizer`.
    """

    def __init__(self, beta_1, beta_2, momentum_dtype, **kwargs):
        super().__init__(**kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.momentum_dtype = momentum_dtype

    def is_factored(self, shape):
        """Whether a weight of this shape keeps row and column means of its squares."""
        return False

    def direction(self, first, second, step):
        """The update from float32 moments, `second` as `mean_squares`.

        Args:
            step: the step that it is for, from 1; float32 scalar.
        """
        raise NotImplementedError

    def add_slots(self, variables):
        self._momentums, self._moments = [], []
        for variable in variables:
            self._momentums.append(
                self.add_slot(variable, "momentum", dtype=self.momentum_dtype)
            )
            shape = tuple(variable.shape)
            slots = {"second_moment": shape}
            if self.is_factored(shape):
                slots = {"rows": shape[:-1], "columns": shape[:-2] + shape[-1:]}
            self._moments.append(
                tuple(
                    self.add_slot(variable, name, slot_shape)
                    for name, slot_shape in slots.items()
                )
            )

    def slots(self, variable):
        """`(first moment, second moments)` of a variable, Keras variables."""
        index = self._get_variable_index(variable)
        return self._momentums[index], self._moments[index]

    def average(self, moments, squares):
        """Second moments `moments` after a step of the given `mean_squares`."""
        return tuple(
            self.beta_2 * old + (1 - self.beta_2) * square
            for old, square in zip(moments, squares, strict=True)
        )

    def moments_after(self, gradient, variable):
        """`(first moment, second moments)` that a gradient would leave; float32."""
        gradient = tf.cast(tf.convert_to_tensor(gradient), tf.float32)
        momentum, moments = self.slots(variable)
        old = tf.cast(momentum.value, tf.float32)
        squares = mean_squares(gradient, len(moments))
        return (
            self.beta_1 * old + (1 - self.beta_1) * gradient,
            self.average([moment.value for moment in moments], squares),
        )

    def update_step(self, gradient, variable, learning_rate):
        first, second = self.moments_after(gradient, variable)
        momentum, moments = self.slots(variable)
        self._step(variable, moments, first, second, learning_rate)
        self.assign(momentum, first)

    def apply_moments(self, variables, remainders, second_moments):
        """A step whose moments were made elsewhere, instead of from gradients.

        Args:
            variables: all that the optimizer was built with.
            remainders: what the slots of the first moments, which hold them already,
                could not hold of them; None for nothing.
            second_moments: tuples, as `mean_squares` gives them.
        """
        learning_rate = self._get_current_learning_rate()
        previous = []
        for variable, remainder, second in zip(
            variables, remainders, second_moments, strict=True
        ):
            # One at a time: side by side they would hold copies of many weights.
            with tf.control_dependencies(previous):
                momentum, moments = self.slots(variable.value)
                first = tf.cast(tf.convert_to_tensor(momentum.value), tf.float32)
                if remainder is not None:
                    first += tf.cast(remainder, tf.float32)
                # Each replica its own copies, all of them by the same values.
                copies = [own(moment) for moment in moments]
                self._step(own(variable), copies, first, second, learning_rate)
                previous = [own(variable).read_value()]
        self.iterations.assign_add(1)

    def _step(self, variable, moments, first, second, learning_rate):
        step = tf.cast(self.iterations.value + 1, tf.float32)
        for slot, moment in zip(moments, second, strict=True):
            self.assign(slot, moment)
        self.descend(variable, self.direction(first, second, step), learning_rate)

    def descend(self, variable, update, learning_rate):
        """`w <- w - lr * (update + lambda * w)`."""
        index = self._get_variable_index(variable)
        weight = tf.cast(tf.convert_to_tensor(variable), tf.float32)
        rate = self._rates[index] * tf.cast(learning_rate, tf.float32)
        delta = rate * (update + self._decays[index] * weight)
        self.assign_sub(variable, tf.cast(delta, variable.dtype))

    def get_config(self):
        return super().get_config() | {
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "momentum_dtype": self.momentum_dtype,
        }
