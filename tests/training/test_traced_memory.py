"""What traced graphs hold: written out by hand for small layers."""

import functools

import keras
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from keras import layers

from basic_tf.models import description
from basic_tf.training import traced_memory
from basic_tf.training.traced_memory import Held
from tests.models.test_values import small_text_transformer


def trace(*members, width=3):
    network = keras.Sequential(list(members))
    network.build((None, 1, width))
    return traced_memory.trace(network, (1, width))


@pytest.mark.parametrize(
    ("activation", "tensors"),
    [
        # Their output, which the next product reads, too.
        ("relu", 1),
        ("sigmoid", 1),
        # x / sqrt(2), 1 + its erf, x / 2; and the output.
        ("gelu", 4),
    ],
)
def test_an_activation_keeps_what_its_gradient_reads(activation, tensors):
    kept = trace(layers.Dense(5, activation), layers.Dense(2)).kept
    assert kept.per_example == 4 * 5 * tensors


def test_a_product_whose_output_nobody_reads_keeps_nothing():
    assert trace(layers.Dense(5), use := layers.Dense(2)).kept.per_example == 4 * 5
    assert trace(use.__class__(2)).kept == Held()


def test_a_softmax_keeps_its_output_and_not_its_logits():
    kept = trace(layers.Dense(5), layers.Softmax(), layers.Dense(2)).kept
    assert kept.per_example == 4 * 5


def test_bfloat16_keeps_half_of_the_activations():
    def network(dtype):
        members = [layers.Dense(5, "relu", dtype=dtype), layers.Dense(2, dtype=dtype)]
        return keras.Sequential(members)

    kept = [
        traced_memory.trace(
            description.without_weights(functools.partial(network, dtype), (1, 3)),
            (1, 3),
        ).kept.per_example
        for dtype in ("float32", "mixed_bfloat16")
    ]
    # In bfloat16 the inputs are a copy, too.
    assert kept == [4 * 5, 2 * 5 + 2 * 3]


def test_what_is_held_grows_with_the_batch():
    bare = description.without_weights(small_text_transformer, (6,))
    passes = traced_memory.trace(bare, (6,))
    assert passes.kept.per_example > 1009 * passes.kept.fixed / 100
    assert passes.peak(64) >= passes.kept.bytes(64)
    assert passes.peak(64) < passes.peak(128) <= 2 * passes.peak(64)
    # A first of two backward passes ends with all that is kept.
    assert passes.peak(64, twice=True) > passes.peak(64)


def test_a_tensor_takes_the_place_of_one_that_nobody_reads_any_more():
    def function(x, y):
        return tf.reduce_sum(tf.exp(tf.reshape(x * y, (8,))))

    # exp(x y), in the place of x y; the value; its gradient, whole and spread out.
    assert traced_memory.traced_peak(function, (2, 4), (2, 4)) == 32 + 4 + 4 + 32


@given(
    st.lists(st.builds(Held, st.integers(0, 50), st.integers(0, 50)), min_size=1),
    st.integers(1, 100),
)
def test_the_largest_moments_are_those_of_every_batch(moments, batch_size):
    chosen = traced_memory.largest(moments)
    assert set(chosen) <= set(moments)
    most = max(moment.bytes(batch_size) for moment in moments)
    assert traced_memory.Passes(Held(), chosen, ()).peak(batch_size) == most
