"""The dense form in float64 gives the loss, its gradients and its accuracy."""

import math
import threading
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies

from basic_tf import losses, streaming_loss
from basic_tf.replicas import Replicas

SEEDS = strategies.integers(0, 2**16)
LOG_SCALES = strategies.floats(-1, math.log(100))


def unit_vectors(seed, *shape):
    vectors = np.random.default_rng(seed).normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def value_and_gradients(form, dtype, images, texts, log_scale, *options):
    tensors = [tf.cast(value, dtype) for value in (images, texts, log_scale)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        loss, accuracy = form(*tensors, *options)
        loss = 3.0 * tf.cast(loss, dtype)
    return loss, accuracy, *tape.gradient(loss, tensors)


def in_lockstep(count, run):
    """`run(replicas)` of each replica: threads that wait for one another."""
    barrier, board = threading.Barrier(count, timeout=60), [None] * count

    def exchange(index, tensor):
        board[index] = tensor
        barrier.wait()
        tensors = list(board)
        barrier.wait()
        return tensors

    def total(index, tensors):
        parts = exchange(index, tensors)
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *parts)

    def run_one(index):
        return run(
            Replicas(
                count,
                index,
                gather=lambda tensor: tf.concat(exchange(index, tensor), 0),
                total=lambda tensors: total(index, tensors),
            )
        )

    with futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(run_one, range(count)))


def assert_close(actual, expected):
    """Of losses, accuracies and gradients, in this order."""
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-6)
    for ours, theirs in zip(actual, expected, strict=True):
        # Logits of up to 100 are rounded by 4e-6, and so are the probabilities.
        scale = max(float(tf.reduce_max(tf.abs(theirs))), 1e-3)
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5 * scale)


def assert_agrees(images, texts, log_scale, caption_ids, block_images):
    expected = value_and_gradients(
        losses.contrastive_loss, tf.float64, images, texts, log_scale, caption_ids
    )
    actual = value_and_gradients(
        streaming_loss.streaming_contrastive_loss,
        tf.float32, images, texts, log_scale, caption_ids, block_images,
    )  # fmt: skip
    assert_close(actual, expected)


@settings(max_examples=30)
@given(
    strategies.sampled_from([(1, 1), (6, 1), (6, 2), (6, 3), (6, 6), (7, 7), (8, 4)]),
    strategies.integers(1, 8),
    LOG_SCALES,
    strategies.booleans(),
    SEEDS,
)
def test_any_block_size_agrees_with_the_dense_form(sizes, dim, log_scale, equal, seed):
    batch_size, block_images = sizes
    images, texts = unit_vectors(seed, 2, batch_size, dim)
    caption_ids = np.arange(batch_size) // 2 if equal else None
    assert_agrees(images, texts, log_scale, caption_ids, block_images)


@pytest.mark.parametrize("temperature", [1.0, 0.05, 0.01])
def test_a_trained_batch_agrees_with_the_dense_form(temperature):
    images, noise = unit_vectors(0, 2, 512, 64)
    texts = images + 0.3 * noise
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    assert_agrees(images, texts, -math.log(temperature), None, 64)


def test_a_loss_next_to_nothing_keeps_its_digits():
    one, other = np.eye(2)
    images, texts = np.stack([one, other]), np.stack([one, other])
    loss, *_ = value_and_gradients(
        streaming_loss.streaming_contrastive_loss, tf.float32, images, texts, 4.0
    )
    # log(e^s + 1) - s, with s = e^4: lost altogether in float32.
    np.testing.assert_allclose(loss, 3 * math.exp(-math.exp(4.0)), rtol=1e-5)


def test_embeddings_of_bfloat16_are_summed_in_float32():
    images, texts = unit_vectors(3, 2, 32, 16)
    rounded = [tf.cast(tf.constant(x), tf.bfloat16) for x in (images, texts)]
    loss, _ = streaming_loss.streaming_contrastive_loss(*rounded, 2.0)
    expected, _ = losses.contrastive_loss(
        *(tf.cast(x, tf.float64) for x in rounded), tf.constant(2.0, tf.float64)
    )
    assert loss.dtype == tf.float32
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def shapes_of_products(function, *vectors):
    """Shapes of all matrix products in the graph of a function."""
    graph = tf.function(function).get_concrete_function(*vectors).graph
    graphs = [
        graph,
        *(f.graph for f in graph._functions.values() if hasattr(f, "graph")),
    ]
    return sorted(
        tuple(operation.outputs[0].shape)
        for each in graphs
        for operation in each.get_operations()
        if operation.type == "MatMul"
    )


def test_no_matrix_of_all_pairs_is_made():
    vectors = tf.TensorSpec((256, 8), tf.float32)
    products = shapes_of_products(
        lambda x, y: value_and_gradients(
            streaming_loss.streaming_contrastive_loss, tf.float32, x, y, 1.0, None, 16
        ),
        vectors,
        vectors,
    )
    # Logits, logits again, and the gradients by a block's images and by all texts.
    assert products == [(16, 8), (256, 8), (256, 16), (256, 16)]


def test_it_compiles_with_xla():
    images, texts = unit_vectors(5, 2, 16, 8)
    compiled = tf.function(
        lambda *tensors: value_and_gradients(
            streaming_loss.streaming_contrastive_loss,
            tf.float32,
            *tensors,
            1.0,
            None,
            4,
        ),
        jit_compile=True,
    )
    tensors = [tf.constant(x, tf.float32) for x in (images, texts)]
    expected = value_and_gradients(
        losses.contrastive_loss, tf.float64, images, texts, 1.0
    )
    for ours, theirs in zip(compiled(*tensors), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_replicas_together_have_the_loss_and_gradients_of_one():
    """Each replica's part by itself, with what the others hand it simulated."""
    images, texts = (tf.constant(x, tf.float32) for x in unit_vectors(6, 2, 12, 5))
    log_scale = tf.constant(2.0)
    expected = value_and_gradients(
        losses.contrastive_loss, tf.float64, images.numpy(), texts.numpy(), 2.0
    )

    def run(replicas):
        own = [tf.split(x, replicas.count)[replicas.index] for x in (images, texts)]
        return value_and_gradients(
            streaming_loss.streaming_contrastive_loss,
            tf.float32, *own, log_scale, None, 2, replicas,
        )  # fmt: skip

    parts = in_lockstep(3, run)
    for loss, accuracy, *_ in parts:
        np.testing.assert_allclose(loss, expected[0], rtol=1e-5)
        np.testing.assert_allclose(accuracy, expected[1], rtol=1e-6)
    for index in (2, 3):
        gradients = tf.concat([part[index] for part in parts], 0)
        np.testing.assert_allclose(gradients, expected[index], rtol=1e-4, atol=1e-6)
    shares = sum(part[4] for part in parts)
    np.testing.assert_allclose(shares, expected[4], rtol=1e-5)


def test_images_that_a_block_does_not_divide_are_refused():
    vectors = tf.ones((6, 2))
    with pytest.raises(ValueError, match="divide the 6 images; use one of 2, 3, 6"):
        streaming_loss.streaming_contrastive_loss(vectors, vectors, 0.0, None, 4)
