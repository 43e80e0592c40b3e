"""AdaFactorW (BASIC section 9.1): AdaFactor's factored second moment, AdamW's decay."""

import keras
import tensorflow as tf

from basic_tf.optimizers import groups

MIN_FACTORED_AXIS = 2  # an axis of one entry has nothing to factor
EPSILON = 1e-30  # inside the squares (Shazeer & Stern 2018, section 6)

# Weights of rank 2 and more decay; gains, biases and the temperature do not.
DEFAULT_DECAY_RULES = (
    (r"(^|/)(kernel|embeddings|depthwise_kernel|relative_bias)$", 1.0),
    (r"(^|/)(bias|gamma|beta|log_scale)$", 0.0),
)


def is_factored(shape):
    """Whether a weight of this shape keeps row and column means, not a full slot."""
    return len(shape) >= 2 and min(shape[-2:]) >= MIN_FACTORED_AXIS


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


def average_moments(moments, squares, beta_2):
    """One step of the second moments, from `mean_squares` of a gradient."""
    return tuple(
        beta_2 * old + (1 - beta_2) * (square + EPSILON)
        for old, square in zip(moments, squares, strict=True)
    )


def inverse_root(moments, correction):
    """`1 / sqrt(v)` of the (reconstructed) second moment.

    Args:
        moments: as `mean_squares` gives them.
        correction: `1 - beta_2^t`, which the moments are divided by.

    Returns:
        Float32 of the weight's shape; for a factored weight
        `v = rows columns^T / mean(rows)`.
    """
    if len(moments) == 1:
        return tf.math.rsqrt(moments[0] / correction)
    rows, columns = moments
    row_factor = rows / tf.reduce_mean(rows, -1, keepdims=True)
    return (
        tf.math.rsqrt(row_factor)[..., tf.newaxis]
        * tf.math.rsqrt(columns / correction)[..., tf.newaxis, :]
    )


def clip_by_rms(update, threshold):
    """Scales the update so that its root mean square is at most `threshold`."""
    rms = tf.sqrt(tf.reduce_mean(tf.square(update)))
    return update / tf.maximum(1.0, rms / threshold)


@keras.saving.register_keras_serializable("basic_tf")
class AdaFactorW(keras.optimizers.Optimizer):
    """AdaFactor with a bfloat16 first moment and decoupled weight decay.

    `w <- w - lr * (m / sqrt(v) + lambda * w)`, both moments corrected for their start
    at zero as in Adam. No relative step size, no scaling by the parameter. A factored
    weight of `[n, m]` keeps `n + m` floats and `n * m` bfloat16.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        decay: lambda of the decoupled weight decay.
        decay_rules: `((pattern, factor), ...)` over variable paths; the factor is
            multiplied with `decay`. Every variable must match exactly one pattern.
        clip_threshold: largest root mean square of an update, before learning rate and
            decay; None for no clipping.
        momentum_dtype: storage of the first moment. It is cast to float32 before the
            update is computed.

    Raises:
        ValueError: when built, for a variable that does not match exactly one pattern.

    Example:
        >>> optimizer = AdaFactorW(learning_rate=1e-3, decay=0.01)
        >>> optimizer.momentum_dtype
        'bfloat16'

    Source: BASIC section 9.1; Shazeer & Stern 2018; Loshchilov & Hutter 2019.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        beta_1=0.9,
        beta_2=0.999,
        decay=0.0,
        decay_rules=DEFAULT_DECAY_RULES,
        clip_threshold=1.0,
        momentum_dtype="bfloat16",
        name="adafactorw",
        **kwargs,
    ):
        # Keras's own weight_decay is one number for all variables: not handed on.
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.decay = decay
        self.decay_rules = tuple(tuple(rule) for rule in decay_rules)
        self.clip_threshold = clip_threshold
        self.momentum_dtype = momentum_dtype

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        factors = groups.match_rules(variables, self.decay_rules)
        self._decays = [self.decay * factor for factor in factors]
        self._momentums, self._moments = [], []
        for variable in variables:
            shape = tuple(variable.shape)
            name = variable.path.replace("/", "_")
            self._momentums.append(
                self.add_variable(
                    shape, dtype=self.momentum_dtype, name=f"{name}_momentum"
                )
            )
            slots = {"second_moment": shape}
            if is_factored(shape):
                slots = {"rows": shape[:-1], "columns": shape[:-2] + shape[-1:]}
            self._moments.append(
                tuple(
                    self.add_variable(
                        slot_shape, dtype="float32", name=f"{name}_{slot}"
                    )
                    for slot, slot_shape in slots.items()
                )
            )

    def slots(self, variable):
        """`(first moment, second moments)` of a variable, Keras variables."""
        index = self._get_variable_index(variable)
        return self._momentums[index], self._moments[index]

    def moments_after(self, gradient, variable):
        """`(first moment, second moments)` that a gradient would leave; float32."""
        gradient = tf.cast(tf.convert_to_tensor(gradient), tf.float32)
        momentum, moments = self.slots(variable)
        old = tf.cast(momentum.value, tf.float32)
        squares = mean_squares(gradient, len(moments))
        return (
            self.beta_1 * old + (1 - self.beta_1) * gradient,
            average_moments([m.value for m in moments], squares, self.beta_2),
        )

    def update_step(self, gradient, variable, learning_rate):
        moments = self.moments_after(gradient, variable)
        self._step(variable, *moments, learning_rate)

    def apply_moments(self, variables, first_moments, second_moments):
        """A step from moments that were made elsewhere, instead of from gradients.

        Args:
            variables: all that the optimizer was built with.
            first_moments: float32, of the variables' shapes.
            second_moments: tuples, as `mean_squares` gives them.
        """
        learning_rate = self._get_current_learning_rate()
        for variable, momentum, moments in zip(
            variables, first_moments, second_moments, strict=True
        ):
            self._step(variable.value, momentum, moments, learning_rate)
        self.iterations.assign_add(1)

    def _step(self, variable, new_momentum, new_moments, learning_rate):
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations.value + 1, tf.float32)
        update = (
            new_momentum
            / (1 - tf.pow(self.beta_1, step))
            * inverse_root(new_moments, 1 - tf.pow(self.beta_2, step))
        )
        if self.clip_threshold is not None:
            update = clip_by_rms(update, self.clip_threshold)
        weight = tf.cast(tf.convert_to_tensor(variable), tf.float32)
        delta = tf.cast(learning_rate, tf.float32) * (
            update + self._decays[index] * weight
        )
        self.assign(self._momentums[index], new_momentum)
        for slot, moment in zip(self._moments[index], new_moments, strict=True):
            self.assign(slot, moment)
        self.assign_sub(variable, tf.cast(delta, variable.dtype))

    def get_config(self):
        return super().get_config() | {
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "decay": self.decay,
            "decay_rules": self.decay_rules,
            "clip_threshold": self.clip_threshold,
            "momentum_dtype": self.momentum_dtype,
        }
