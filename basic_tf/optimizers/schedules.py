"""The cosine learning-rate schedule of BASIC Table 6."""

import keras


def warmup_cosine(max_learning_rate, steps, warmup_steps, min_learning_rate=0.0):
    """Linear warm-up from 0, then half a cosine down to a floor.

    Args:
        max_learning_rate: reached at `warmup_steps`.
        steps: length of the whole schedule, warm-up included.
        warmup_steps: length of the warm-up; less than `steps`.
        min_learning_rate: reached at `steps` and kept.

    Returns:
        A `keras.optimizers.schedules.LearningRateSchedule`.

    Raises:
        ValueError: if the warm-up leaves no step to train.
    """
    if not 0 <= warmup_steps < steps:
        raise ValueError(
            f"warmup_steps {warmup_steps} must be less than steps {steps} of the phase"
        )
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup_steps else max_learning_rate,
        decay_steps=steps - warmup_steps,
        alpha=min_learning_rate / max_learning_rate,
        warmup_target=max_learning_rate if warmup_steps else None,
        warmup_steps=warmup_steps,
    )
