"""The learning-rate schedules of BASIC Table 6: warm-up, then a decay to a floor."""

import math

import keras
from keras import ops


def make_schedule(shape, max_learning_rate, steps, warmup_steps, min_learning_rate=0.0):
    """Linear warm-up from 0, then half a cosine, or a line, down to a floor.

    Args:
        shape: of the decay, "cosine" or "linear".
        max_learning_rate: reached at `warmup_steps`; more than 0.
        steps: length of the whole schedule, warm-up included.
        warmup_steps: length of the warm-up; less than `steps`.
        min_learning_rate: reached at `steps` and kept.

    Returns:
        A `keras.optimizers.schedules.LearningRateSchedule`.

    Raises:
        ValueError: for another shape, if the warm-up leaves no step to train, or for a
            rate that is not positive.
    """
    if shape not in _SHAPES:
        raise ValueError(f"schedule {shape!r} is none of {', '.join(_SHAPES)}")
    if not 0 <= warmup_steps < steps:
        raise ValueError(
            f"warmup_steps {warmup_steps} must be at least 0 and less than steps "
            f"{steps} of the phase"
        )
    if not max_learning_rate > 0:
        raise ValueError(f"learning rate {max_learning_rate} must be more than 0")
    return _SHAPES[shape](max_learning_rate, steps, warmup_steps, min_learning_rate)


def simclr_learning_rate(batch_size, scaling="linear"):
    """The largest learning rate of SimCLR's LARS, by batch size.

    Args:
        batch_size: B.
        scaling: "linear" for `0.3 B / 256`, "sqrt" for `0.075 sqrt(B)`, which is better
            for small batches and short training; both are 4.8 at 4096.

    Raises:
        ValueError: for another scaling.

    Source: SimCLR section 2.2 and appendix B.1.
    """
    if scaling == "linear":
        return 0.3 * batch_size / 256
    if scaling == "sqrt":
        return 0.075 * math.sqrt(batch_size)
    raise ValueError(f"scaling {scaling!r} is none of linear, sqrt")


def _cosine(max_learning_rate, steps, warmup_steps, min_learning_rate):
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup_steps else max_learning_rate,
        decay_steps=steps - warmup_steps,
        alpha=min_learning_rate / max_learning_rate,
        warmup_target=max_learning_rate if warmup_steps else None,
        warmup_steps=warmup_steps,
    )


@keras.saving.register_keras_serializable("basic_tf")
class WarmUpLinear(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then a line down to a floor; arguments as of `make_schedule`.

    Example:
        >>> float(WarmUpLinear(1.0, steps=30, warmup_steps=10)(20))
        0.5
    """

    def __init__(self, max_learning_rate, steps, warmup_steps=0, min_learning_rate=0.0):
        super().__init__()
        self.max_learning_rate, self.min_learning_rate = (
            max_learning_rate,
            min_learning_rate,
        )
        self.steps, self.warmup_steps = steps, warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = self.max_learning_rate * step / max(self.warmup_steps, 1)
        left = (self.steps - step) / (self.steps - self.warmup_steps)
        falling = self.min_learning_rate + ops.clip(left, 0.0, 1.0) * (
            self.max_learning_rate - self.min_learning_rate
        )
        return ops.where(step < self.warmup_steps, rising, falling)

    def get_config(self):
        return {
            "max_learning_rate": self.max_learning_rate,
            "steps": self.steps,
            "warmup_steps": self.warmup_steps,
            "min_learning_rate": self.min_learning_rate,
        }


_SHAPES = {"cosine": _cosine, "linear": WarmUpLinear}
