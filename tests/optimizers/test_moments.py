"""A step from moments made elsewhere is the step of the whole gradient."""

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.optimizers.adamw import AdamW
from basic_tf.optimizers.schedules import make_schedule

# Factored are the first two of AdaFactorW; the third decays, the last does not.
SHAPES = {"kernel": (6, 5), "conv": (3, 2, 4, 6), "thin": (5, 1), "bias": (7,)}
RULES = (
    ("kernel|bias", {"decay": 0.5, "learning_rate": 3.0}),
    ("conv|thin", {"decay": 2.0, "learning_rate": 0.5}),
)
STEPS, RATE, BETA_1, BETA_2 = 5, 0.1, 0.8, 0.9


def make(optimizer_class, dtype):
    """An optimizer whose rate, decay and corrections differ from step to step."""
    rng = np.random.default_rng(0)
    variables = [
        keras.Variable(rng.normal(size=shape), name=name)
        for name, shape in SHAPES.items()
    ]
    schedule = make_schedule("linear", RATE, steps=2 * STEPS, warmup_steps=0)
    optimizer = optimizer_class(
        schedule, BETA_1, BETA_2, decay=0.3, rules=RULES, momentum_dtype=dtype
    )
    optimizer.build(variables)
    return optimizer, variables


def draw_gradients():
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        yield [rng.normal(size=shape).astype("float32") for shape in SHAPES.values()]


def put_first_moment(slot, gradient):
    """Assigns it, from NumPy; what a bfloat16 slot could not hold of it."""
    old = np.asarray(slot.value).astype("float32")
    first = np.float32(BETA_1) * old + np.float32(1 - BETA_1) * gradient
    slot.assign(first)
    if slot.dtype == "float32":
        return None
    return first - first.astype(ml_dtypes.bfloat16).astype("float32")


def make_second_moments(slots, gradient):
    squares = gradient.astype("float64") ** 2
    means = (squares.mean(-1), squares.mean(-2)) if len(slots) == 2 else (squares,)
    return tuple(
        np.float32(BETA_2 * slot.numpy() + (1 - BETA_2) * mean)
        for slot, mean in zip(slots, means, strict=True)
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("optimizer_class", [AdaFactorW, AdamW])
def test_moments_made_elsewhere_give_the_steps_of_the_gradients(optimizer_class, dtype):
    ours, our_variables = make(optimizer_class, dtype)
    theirs, their_variables = make(optimizer_class, dtype)
    # In an order of their own: slots, rates and decays are found by variable.
    order = [2, 0, 3, 1]
    shuffled = [our_variables[index] for index in order]
    apply_moments = tf.function(
        lambda remainders, moments: ours.apply_moments(shuffled, remainders, moments)
    )
    for gradients in draw_gradients():
        remainders, moments = [], []
        for variable, index in zip(shuffled, order, strict=True):
            first, second = ours.slots(variable)
            remainders.append(put_first_moment(first, gradients[index]))
            moments.append(make_second_moments(second, gradients[index]))
        apply_moments(remainders, moments)
        theirs.apply([tf.constant(g) for g in gradients], their_variables)
    assert int(ours.iterations) == STEPS
    # Float32 roundings of 5 steps; without its remainder, a bfloat16 moment would move
    # a weight by 2^-9 of a step of 0.05 and more.
    for one, other in zip(our_variables, their_variables, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6, err_msg=one.path)
        first, second = ours.slots(one)
        expected_first, expected_second = theirs.slots(other)
        first, expected_first = (
            np.asarray(slot.value).astype("float32") for slot in (first, expected_first)
        )
        # TensorFlow and NumPy may round a float32 product differently, and so a
        # bfloat16 value at a border.
        tolerance = 1e-6 if dtype == "float32" else 2**-7
        np.testing.assert_allclose(first, expected_first, rtol=tolerance, atol=1e-7)
        for moment, expected in zip(second, expected_second, strict=True):
            np.testing.assert_allclose(moment, expected, rtol=1e-5)


def test_what_a_slot_could_not_hold_counts_in_the_step():
    """The same slots, with and without a remainder of 2^-9 of the moment."""
    steps = []
    for share in (None, 2**-9):
        optimizer, variables = make(AdamW, "bfloat16")
        before = [variable.numpy() for variable in variables]
        remainders, moments = [], []
        for variable in variables:
            optimizer.slots(variable)[0].assign(tf.ones(variable.shape))
            remainders.append(None if share is None else tf.fill(variable.shape, share))
            moments.append((tf.fill(variable.shape, 4.0),))
        optimizer.apply_moments(variables, remainders, moments)
        steps.append(
            [v.numpy() - old for v, old in zip(variables, before, strict=True)]
        )
    # Adam's step of m / (1 - beta_1) over the root of v / (1 - beta_2).
    share_of_step = 2**-9 / (1 - BETA_1) / np.sqrt(4 / (1 - BETA_2))
    for rate, plain, whole in zip((3, 0.5, 0.5, 3), *steps, strict=True):
        expected = -rate * RATE * share_of_step
        # Differences of weights up to 3 in float32.
        np.testing.assert_allclose(whole - plain, expected, atol=1e-6)


@pytest.mark.parametrize("optimizer_class", [AdaFactorW, AdamW])
def test_the_moments_after_a_gradient_are_float32_averages(optimizer_class):
    optimizer, variables = make(optimizer_class, "bfloat16")
    rng = np.random.default_rng(2)
    for variable in variables:
        first, second = optimizer.slots(variable)
        for slot in (first, *second):
            slot.assign(rng.random(slot.shape))
    for variable, gradient in zip(variables, next(draw_gradients()), strict=True):
        momentum, slots = optimizer.slots(variable)
        first, second = optimizer.moments_after(
            gradient, momentum.value, [slot.value for slot in slots]
        )
        old = np.asarray(momentum.value).astype("float64")
        assert first.dtype == "float32"
        np.testing.assert_allclose(
            first, BETA_1 * old + (1 - BETA_1) * gradient, rtol=1e-5, atol=1e-6
        )
        expected = make_second_moments(slots, gradient)
        for moment, value in zip(second, expected, strict=True):
            np.testing.assert_allclose(moment, value, rtol=1e-5)
