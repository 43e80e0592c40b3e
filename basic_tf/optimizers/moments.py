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

    def add_slots(self, variable):
        yield self.add_slot(variable, "momentum", dtype=self.momentum_dtype)
        rank = len(variable.shape)
        slots = {"second_moment": range(rank)}
        if self.is_factored(tuple(variable.shape)):
            columns = [*range(rank - 2), rank - 1]
            slots = {"rows": range(rank - 1), "columns": columns}
        for name, axes in slots.items():
            yield self.add_slot(variable, name, axes)

    def slots(self, variable):
        """`(first moment, second moments)` of a variable, Keras variables."""
        first, *second = self._slots[self._indices[id(variable)]]
        return first, tuple(second)

    def average(self, moments, squares):
        """Second moments `moments` after a step of the given `mean_squares`."""
        return tuple(
            self.beta_2 * old + (1 - self.beta_2) * square
            for old, square in zip(moments, squares, strict=True)
        )

    def moments_after(self, gradient, first, second):
        """`(first moment, second moments)`, float32, from those before a gradient."""
        first = tf.cast(first, tf.float32)
        return (
            self.beta_1 * first + (1 - self.beta_1) * gradient,
            self.average(second, mean_squares(gradient, len(second))),
        )

    def after(self, index, weight, slots, gradient, learning_rate, step):
        first, second = self.moments_after(gradient, slots[0], slots[1:])
        update = self.direction(first, second, step)
        return self.descend(index, weight, update, learning_rate), (first, *second)

    def descend(self, index, weight, update, learning_rate):
        """`w - lr * (update + lambda * w)`."""
        rate = self._rates[index] * learning_rate
        return weight - rate * (update + self._decays[index] * weight)

    def apply_moments(self, variables, remainders, second_moments):
        """A step whose moments were made elsewhere, instead of from gradients.

        Args:
            variables: all that the optimizer was built with.
            remainders: what the slots of the first moments, which hold them already,
                could not hold of them; None for nothing.
            second_moments: tuples, as `mean_squares` gives them.
        """
        learning_rate = tf.cast(self._get_current_learning_rate(), tf.float32)
        step = self._next_step()
        previous = []
        for variable, remainder, second in zip(
            variables, remainders, second_moments, strict=True
        ):
            # One at a time: side by side they would hold copies of many weights.
            with tf.control_dependencies(previous):
                momentum, moments = self.slots(variable)
                first = tf.cast(tf.convert_to_tensor(momentum.value), tf.float32)
                if remainder is not None:
                    first += tf.cast(remainder, tf.float32)
                # Each replica its own copies, all of them by the same values.
                for moment, value in zip(moments, second, strict=True):
                    own(moment).assign(value)
                index = self._indices[id(variable)]
                weight = tf.cast(tf.convert_to_tensor(variable.value), tf.float32)
                update = self.direction(first, second, step)
                weight = self.descend(index, weight, update, learning_rate)
                own(variable).assign(tf.cast(weight, variable.dtype))
                previous = [own(variable).read_value()]
        self.iterations.assign_add(1)

    def get_config(self):
        return super().get_config() | {
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "momentum_dtype": self.momentum_dtype,
        }
