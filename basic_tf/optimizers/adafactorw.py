"""AdaFactorW (BASIC section 9.1): AdaFactor's factored second moment, AdamW's decay."""

import keras
import tensorflow as tf

from basic_tf.optimizers import groups
from basic_tf.optimizers.moments import MomentOptimizer

MIN_FACTORED_AXIS = 2  # an axis of one entry has nothing to factor
EPSILON = 1e-30  # inside the squares (Shazeer & Stern 2018, section 6)


def is_factored(shape):
    """Whether a weight of this shape keeps row and column means, not a full slot."""
    return len(shape) >= 2 and min(shape[-2:]) >= MIN_FACTORED_AXIS


def inverse_root(moments, correction):
    """`1 / sqrt(v)` of the (reconstructed) second moment.

    Args:
        moments: as `moments.mean_squares` gives them.
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
class AdaFactorW(MomentOptimizer):
    """AdaFactor with a bfloat16 first moment and decoupled weight decay.

    `w <- w - lr * (m / sqrt(v) + lambda * w)`, both moments corrected for their start
    at zero as in Adam. No relative step size, no scaling by the parameter. A factored
    weight of `[n, m]` keeps `n + m` floats and `n * m` bfloat16.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        decay: lambda of the decoupled weight decay; of weights of two axes and more.
        rules: see `groups.match_rules`; every variable must match exactly one.
        clip_threshold: largest root mean square of an update, before learning rate and
            decay; None for no clipping.
        momentum_dtype: storage of the first moment. It is cast to float32 before the
            update is computed.

    Raises:
        ValueError: when built, for a variable that does not match exactly one rule.

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
        rules=groups.ONE_RULE,
        clip_threshold=1.0,
        momentum_dtype="bfloat16",
        name="adafactorw",
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
        self.clip_threshold = clip_threshold

    def is_factored(self, shape):
        return is_factored(shape)

    def average(self, moments, squares):
        return super().average(moments, [square + EPSILON for square in squares])

    def direction(self, first, second, step):
        first = first / (1 - tf.pow(self.beta_1, step))
        update = first * inverse_root(second, 1 - tf.pow(self.beta_2, step))
        if self.clip_threshold is None:
            return update
        return clip_by_rms(update, self.clip_threshold)

    def get_config(self):
        return super().get_config() | {"clip_threshold": self.clip_threshold}
