"""Warm-up, cosine and line against their closed form."""

import math

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies

from basic_tf.optimizers import schedules


def closed_form(shape, step, maximum, steps, warmup_steps, minimum):
    if step < warmup_steps:
        return maximum * step / warmup_steps
    progress = min(1, (step - warmup_steps) / (steps - warmup_steps))
    left = {"linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return minimum + (maximum - minimum) * left[shape]


@hypothesis.given(
    strategies.sampled_from(["cosine", "linear"]),
    strategies.integers(0, 50),
    strategies.integers(1, 200),
    strategies.floats(1e-5, 1),
    strategies.floats(0, 1),
    strategies.integers(0, 300),
)
def test_every_step_agrees_with_the_closed_form(
    shape, warmup_steps, decay_steps, maximum, ratio, step
):
    steps, minimum = warmup_steps + decay_steps, ratio * maximum
    schedule = schedules.make_schedule(shape, maximum, steps, warmup_steps, minimum)
    expected = closed_form(shape, step, maximum, steps, warmup_steps, minimum)
    # The cosine is taken in float32.
    np.testing.assert_allclose(schedule(step), expected, rtol=2e-5, atol=1e-6 * maximum)


# BASIC Table 6: S contrastive, M and L contrastive, M and L pretraining.
TABLE_6 = [
    ("cosine", 1e-3, 500_000, 25_000, 1e-5),
    ("cosine", 2.5e-4, 500_000, 25_000, 1e-5),
    ("linear", 4e-4, 1_200_000, 25_000, 2e-5),
]


@pytest.mark.parametrize("shape,maximum,steps,warmup_steps,minimum", TABLE_6)
def test_the_schedules_of_the_paper_begin_peak_and_end(
    shape, maximum, steps, warmup_steps, minimum
):
    schedule = schedules.make_schedule(shape, maximum, steps, warmup_steps, minimum)
    middle = (steps + warmup_steps) // 2
    expected = {
        0: 0,
        warmup_steps // 2: maximum / 2,
        warmup_steps: maximum,
        middle: (maximum + minimum) / 2,
        steps: minimum,
        2 * steps: minimum,
    }
    for step, value in expected.items():
        np.testing.assert_allclose(schedule(step), value, rtol=1e-4, atol=1e-12)


def test_without_warm_up_the_first_step_has_the_largest_rate():
    schedule = schedules.make_schedule("cosine", 0.5, steps=10, warmup_steps=0)
    np.testing.assert_allclose(schedule(0), 0.5, rtol=1e-6)
    np.testing.assert_allclose(schedule(10), 0, atol=1e-7)


@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_a_config_round_trip_makes_the_same_schedule(shape):
    schedule = schedules.make_schedule(shape, 1e-3, 100, 10, 1e-5)
    config = keras.saving.serialize_keras_object(schedule)
    copy = keras.saving.deserialize_keras_object(config)
    for step in (0, 5, 10, 55, 100):
        assert copy(step) == schedule(step)


@pytest.mark.parametrize("warmup_steps", [100, 101, -1])
def test_a_warm_up_that_leaves_no_step_is_refused(warmup_steps):
    message = f"warmup_steps {warmup_steps} must be at least 0 and less than steps 100"
    with pytest.raises(ValueError, match=message):
        schedules.make_schedule("cosine", 1e-3, steps=100, warmup_steps=warmup_steps)


@pytest.mark.parametrize("rate", [0.0, -1e-3, float("nan")])
@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_a_rate_that_is_not_positive_is_refused(shape, rate):
    with pytest.raises(ValueError, match=f"learning rate {rate} must be more than 0"):
        schedules.make_schedule(shape, rate, steps=100, warmup_steps=10)


def test_an_unknown_shape_is_refused():
    with pytest.raises(ValueError, match="'step' is none of cosine, linear"):
        schedules.make_schedule("step", 1e-3, 100, 10)


@pytest.mark.parametrize(
    ("batch_size", "linear", "square_root"), [(256, 0.3, 1.2), (4096, 4.8, 4.8)]
)
def test_both_scalings_of_simclr(batch_size, linear, square_root):
    rate = schedules.simclr_learning_rate
    assert rate(batch_size) == pytest.approx(linear)
    assert rate(batch_size, "sqrt") == pytest.approx(square_root)


def test_an_unknown_scaling_is_refused():
    with pytest.raises(ValueError, match="'cubic' is none of linear, sqrt"):
        schedules.simclr_learning_rate(256, "cubic")
