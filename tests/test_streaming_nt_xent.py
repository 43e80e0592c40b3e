"""The dense form in float64 gives the loss, its gradient and its accuracy."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies
from test_streaming_loss import (
    assert_close,
    in_lockstep,
    shapes_of_products,
    unit_vectors,
)

from basic_tf import losses, streaming_nt_xent


def value_and_gradient(form, dtype, views, temperature, *options):
    views = tf.cast(views, dtype)
    with tf.GradientTape() as tape:
        tape.watch(views)
        loss, accuracy = form(views, temperature, *options)
        loss = 3.0 * tf.cast(loss, dtype)
    return loss, accuracy, tape.gradient(loss, views)


def streamed(views, *options):
    form = streaming_nt_xent.streaming_nt_xent_loss
    return value_and_gradient(form, tf.float32, views, *options)


def dense(views, temperature):
    return value_and_gradient(losses.nt_xent_loss, tf.float64, views, temperature)


@settings(max_examples=30)
@given(
    strategies.integers(1, 7),
    strategies.data(),
    strategies.integers(1, 8),
    strategies.floats(0.02, 2),
    strategies.integers(0, 2**16),
)
def test_any_block_size_agrees_with_the_dense_form(images, data, dim, tau, seed):
    divisors = [size for size in range(1, 2 * images + 1) if 2 * images % size == 0]
    block_views = data.draw(strategies.sampled_from([None, *divisors]))
    views = unit_vectors(seed, 2 * images, dim)
    assert_close(streamed(views, tau, block_views), dense(views, tau))


def test_a_trained_batch_agrees_with_the_dense_form():
    images, noise = unit_vectors(0, 256, 64), unit_vectors(1, 512, 64)
    views = np.repeat(images, 2, axis=0) + 0.3 * noise
    views /= np.linalg.norm(views, axis=1, keepdims=True)
    assert_close(streamed(views, 0.05, 64), dense(views, 0.05))


def test_a_loss_next_to_nothing_keeps_its_digits():
    views = np.repeat(np.eye(2), 2, axis=0)
    loss, *_ = streamed(views, 1 / 50)
    # log(e^50 + 2) - 50: lost altogether in float32.
    np.testing.assert_allclose(loss, 3 * 2 * math.exp(-50), rtol=1e-5)


def test_views_of_bfloat16_are_summed_in_float32():
    views = tf.cast(tf.constant(unit_vectors(3, 32, 16)), tf.bfloat16)
    loss, _ = streaming_nt_xent.streaming_nt_xent_loss(views, 0.1)
    expected, _ = losses.nt_xent_loss(tf.cast(views, tf.float64), 0.1)
    assert loss.dtype == tf.float32
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_no_matrix_of_all_views_is_made():
    products = shapes_of_products(
        lambda views: streamed(views, 0.1, 16), tf.TensorSpec((256, 8), tf.float32)
    )
    # Logits, logits again, and the gradient by a block's views.
    assert products == [(16, 8), (256, 16), (256, 16)]


def test_it_compiles_with_xla():
    views = tf.constant(unit_vectors(5, 16, 8), tf.float32)
    compiled = tf.function(lambda x: streamed(x, 0.1, 4), jit_compile=True)
    assert_close(compiled(views), dense(views, 0.1))


def test_replicas_together_have_the_loss_and_gradient_of_one():
    views = tf.constant(unit_vectors(6, 12, 5), tf.float32)
    expected = dense(views, 0.2)
    parts = in_lockstep(
        3,
        lambda replicas: streamed(
            tf.split(views, replicas.count)[replicas.index], 0.2, 2, replicas
        ),
    )
    gradient = tf.concat([part[2] for part in parts], 0)
    for loss, accuracy, _ in parts:
        assert_close((loss, accuracy, gradient), expected)


def test_views_that_a_block_does_not_divide_are_refused():
    with pytest.raises(ValueError, match="divide the 6 views; use one of 2, 3, 6"):
        streaming_nt_xent.streaming_nt_xent_loss(tf.ones((6, 2)), 0.1, 4)
