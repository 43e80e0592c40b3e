"""Sums of gradients made one by one, in NumPy, give the moments."""

import math

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.optimizers import adafactorw, adamw
from basic_tf.replicas import ONE_REPLICA
from basic_tf.training import contrastive_trainer, microbatching, slot_accumulation
from tests.training import small_encoders
from tests.training.test_microbatching import make_batch, stateless

BETA_1, BETA_2 = 0.9, 0.99


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(0)
    encoder, _ = stateless(small_encoders.build(), batch_norm="frozen")
    return encoder


def make_optimizer(encoder, dtype="float32", beta_2=BETA_2, scale=1.0):
    """One whose moments are not at zero."""
    optimizer = adafactorw.AdaFactorW(1e-3, BETA_1, beta_2, momentum_dtype=dtype)
    optimizer.build(encoder.weights)
    rng = np.random.default_rng(1)
    for weight in encoder.weights:
        momentum, moments = optimizer.slots(weight)
        for slot in (momentum, *moments):
            slot.assign(scale * rng.random(slot.shape))
    return optimizer


def accumulate(encoder, optimizer, images, by_embeddings, size, correction="unbiased"):
    @tf.function
    def run():
        batch = microbatching.Batch(encoder, images, size, 0, ONE_REPLICA)
        return slot_accumulation.accumulate(batch, by_embeddings, optimizer, correction)

    return run()


def gradients_of(encoder, images, by_embeddings):
    batch = microbatching.encode(encoder, images, 0, 0)
    return [gradient.numpy() for gradient in batch.backward(by_embeddings)[0]]


def draw(batch_size):
    images, _ = make_batch(batch_size)
    rng = np.random.default_rng(2)
    return images, tf.constant(
        rng.normal(size=(batch_size, small_encoders.DIM)), "float32"
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_64_microbatches_leave_the_first_moment_of_their_sum(encoder, dtype):
    images, by_embeddings = draw(128)
    optimizer = make_optimizer(encoder, dtype)
    old = [np.float32(optimizer.slots(w)[0].numpy()) for w in encoder.weights]
    remainders, _, _ = accumulate(encoder, optimizer, images, by_embeddings, 2)
    first = [
        np.float32(optimizer.slots(weight)[0].numpy())
        + (0 if remainder is None else np.float32(remainder.numpy()))
        for weight, remainder in zip(encoder.weights, remainders, strict=True)
    ]
    whole = gradients_of(encoder, images, by_embeddings)
    for ours, before, gradient in zip(first, old, whole, strict=True):
        expected = BETA_1 * before + (1 - BETA_1) * gradient
        # bfloat16 and what it could not hold, bfloat16 too: 16 bits together.
        tolerance = 1e-5 if dtype == "float32" else 2e-4
        np.testing.assert_allclose(ours, expected, atol=tolerance * abs(expected).max())


def test_bfloat16_alone_would_lose_the_parts():
    parts = np.random.default_rng(0).random((64, 100)).astype("float32") / 64
    total = np.zeros(100, ml_dtypes.bfloat16)
    slot = keras.Variable(np.zeros(100), dtype="bfloat16")
    remainder = tf.zeros(100, "bfloat16")
    for part in parts:
        total = (total.astype("float32") + part).astype(ml_dtypes.bfloat16)
        remainder = slot_accumulation.add_to_slot(slot, remainder, part)
    expected = parts.sum(0)
    error = abs(total.astype("float32") / expected - 1).max()
    ours = np.float32(slot.numpy()) + np.float32(remainder.numpy())
    assert error > 0.01
    assert abs(ours / expected - 1).max() < 2e-4


@pytest.mark.parametrize("correction", ["none", "paper", "unbiased"])
def test_second_moments_are_those_of_the_estimate(encoder, correction):
    images, by_embeddings = draw(12)
    optimizer = make_optimizer(encoder, beta_2=0.5, scale=1e-3)
    old = [[m.numpy() for m in optimizer.slots(w)[1]] for w in encoder.weights]
    _, second, _ = accumulate(encoder, optimizer, images, by_embeddings, 4, correction)
    halves = [
        gradients_of(encoder, images[k : k + 2], by_embeddings[k : k + 2])
        for k in range(0, 12, 2)
    ]
    share = {"none": 0, "paper": 1, "unbiased": 2 / 3}[correction]
    for index, (ours, before) in enumerate(zip(second, old, strict=True)):
        # The means over microbatches, in place of their shares of the sum.
        pairs = [
            (3 * halves[2 * i][index], 3 * halves[2 * i + 1][index]) for i in range(3)
        ]
        squares = np.mean([(a + b) ** 2 for a, b in pairs], 0)
        variance = np.mean([(a - b) ** 2 for a, b in pairs], 0)
        estimate = squares - share * variance
        axes = (-1, -2) if len(ours) == 2 else (None,)
        for moment, start, axis in zip(ours, before, axes, strict=True):
            mean = estimate if axis is None else estimate.mean(axis)
            least = np.mean([(a + b) ** 2 for a, b in pairs], 0) / 3
            least = least if axis is None else least.mean(axis)
            expected = np.maximum(0.5 * start + 0.5 * mean, 0.5 * least)
            scale = abs(expected).max()
            np.testing.assert_allclose(moment, expected, rtol=1e-4, atol=1e-5 * scale)


def test_examples_that_agree_leave_the_second_moment_of_their_gradient(encoder):
    image, by_embedding = draw(1)
    images = tf.repeat(image, 8, 0)
    by_embeddings = tf.repeat(by_embedding, 8, 0)
    optimizer = make_optimizer(encoder)
    gradients = gradients_of(encoder, images, by_embeddings)
    expected = []
    for gradient, weight in zip(gradients, encoder.weights, strict=True):
        first, second = optimizer.slots(weight)
        moments = [moment.value for moment in second]
        expected.append(optimizer.moments_after(gradient, first.value, moments)[1])
    _, second, _ = accumulate(encoder, optimizer, images, by_embeddings, 2)
    for ours, theirs in zip(second, expected, strict=True):
        for moment, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(moment, other, rtol=1e-4, atol=1e-6)


def test_estimates_of_noise_average_to_its_square_and_are_never_nothing():
    """Of 8 microbatches of pure noise of unit variance each: E[g^2] is 8."""
    rng = np.random.default_rng(0)
    optimizer = adafactorw.AdaFactorW(beta_2=0.99)
    moments, averages = (tf.zeros(500),), []
    for _ in range(400):
        halves = rng.normal(0, math.sqrt(0.5), (2, 8, 500)).astype("float32")
        squares = (tf.reduce_sum((halves[0] + halves[1]) ** 2, 0),)
        spreads = (tf.reduce_sum((halves[0] - halves[1]) ** 2, 0),)
        moments = slot_accumulation.second_moments_after(
            optimizer, moments, squares, spreads, 8, 1 - 1 / 8
        )
        assert float(tf.reduce_min(moments[0])) > 0
        averages.append(float(tf.reduce_mean(moments[0])))
    # Corrected for its start at zero; the floor, an eighth of it, is seldom met.
    np.testing.assert_allclose(averages[-1] / (1 - 0.99**400), 8, rtol=0.15)


def trainer(accumulate, size, dtype="float32", kind=adafactorw.AdaFactorW):
    """`(trainer, optimizer)`, compiled."""
    keras.utils.set_random_seed(0)
    ours = contrastive_trainer.ContrastiveTrainer(
        small_encoders.build(),
        microbatch_image=size,
        microbatch_text=size,
        accumulate=accumulate,
    )
    optimizer = kind(1e-2, decay=0.1, momentum_dtype=dtype)
    optimizer.build(ours.trained_variables)
    ours.compile(optimizer, jit_compile=False)
    return ours, optimizer


def make_data():
    images, tokens = make_batch(8)
    return tf.data.Dataset.from_tensors({"image": images, "token_ids": tokens})


def one_step(*arguments):
    ours, optimizer = trainer(*arguments)
    ours.fit(make_data(), shuffle=False, verbose=0)
    assert int(optimizer.iterations) == 1
    return ours.dual_encoder, optimizer


@pytest.mark.parametrize("kind", [adafactorw.AdaFactorW, adamw.AdamW])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_step_of_one_microbatch_is_the_step_with_a_buffer(dtype, kind):
    ours, our_optimizer = one_step("slots", 0, dtype, kind)
    theirs, their_optimizer = one_step("buffer", 0, dtype, kind)
    ours = [*ours.trainable_variables, *our_optimizer.variables]
    theirs = [*theirs.trainable_variables, *their_optimizer.variables]
    for one, other in zip(ours, theirs, strict=True):
        one, other = (np.float32(v.numpy()) for v in (one, other))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_microbatches_leave_the_first_moments_and_statistics_of_the_buffer():
    ours, our_optimizer = one_step("slots", 2)
    theirs, their_optimizer = one_step("buffer", 2)
    for one, other in zip(
        ours.non_trainable_weights, theirs.non_trainable_weights, strict=True
    ):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
    for one, other in zip(
        ours.trainable_variables, theirs.trainable_variables, strict=True
    ):
        one, other = our_optimizer.slots(one)[0], their_optimizer.slots(other)[0]
        scale = abs(other.numpy()).max()
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-5 * scale)


def test_a_gradient_whose_square_is_finite_is_no_reason_to_stop():
    """Of 5e9: the square of its square, 6e38, is past float32."""
    ours, optimizer = trainer("slots", 2)
    for variable in ours.trained_variables:
        for moment in optimizer.slots(variable)[1]:
            moment.assign(tf.fill(moment.shape, 2.5e19))
    ours.fit(make_data(), shuffle=False, verbose=0)
    assert int(ours.non_finite_steps) == 0


def refuse(optimizer, size=2):
    slot_accumulation.check(optimizer, size, 6)


def test_what_cannot_accumulate_in_slots_is_refused():
    ours = adafactorw.AdaFactorW()
    refuse(ours)
    with pytest.raises(ValueError, match="Adam cannot accumulate in its slots"):
        refuse(keras.optimizers.Adam())
    with pytest.raises(ValueError, match="global_clipnorm needs the whole gradient"):
        refuse(adafactorw.AdaFactorW(global_clipnorm=1.0))
    with pytest.raises(ValueError, match="microbatch size 3 has no halves"):
        refuse(ours, size=3)
    with pytest.raises(ValueError, match="'all' is none of none, paper, unbiased"):
        slot_accumulation.correction_factor("all", 4)


def test_global_batch_norm_does_not_go_with_slots():
    with pytest.raises(ValueError, match="batch_norm global needs accumulate buffer"):
        contrastive_trainer.ContrastiveTrainer(
            small_encoders.build(), batch_norm="global", accumulate="slots"
        )
