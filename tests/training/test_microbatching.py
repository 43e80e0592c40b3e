"""A plain tape over the whole batch, and finite differences, give the gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import Phase, given, settings, strategies

from basic_tf import losses, slices
from basic_tf.training import global_batch_norm, microbatching
from basic_tf.training.stateless_encoder import StatelessEncoder
from tests.training import small_encoders

DIVISORS = {12: (1, 2, 3, 4, 6, 12), 8: (1, 2, 4, 8), 5: (1, 5)}
SIZES = strategies.sampled_from(sorted(DIVISORS)).flatmap(
    lambda batch_size: strategies.tuples(
        strategies.just(batch_size),
        strategies.sampled_from(DIVISORS[batch_size]),
        strategies.sampled_from(DIVISORS[batch_size]),
    )
)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return small_encoders.build()


@pytest.fixture
def random_model():
    keras.utils.set_random_seed(0)
    return small_encoders.build(dropout=0.3)


def make_batch(batch_size, seed=0):
    rng = np.random.default_rng(seed)
    size = small_encoders.IMAGE_SIZE
    images = rng.random((batch_size, size, size, 3), np.float32)
    tokens = rng.integers(0, small_encoders.VOCABULARY, (batch_size, 4))
    return tf.constant(images), tf.constant(tokens, tf.int32)


def stateless(model, batch_norm="microbatch", seed=3):
    return (
        StatelessEncoder(encode, encoder, encoder.trainable_variables, seed, batch_norm)
        for encode, encoder in (
            (model.encode_image, model.image_encoder),
            (model.encode_text, model.text_encoder),
        )
    )


def microbatched(model, batch, sizes, step=0, **options):
    """`(loss, gradients, statistics of the image encoder)` by Algorithm 1."""

    @tf.function
    def gradients_of(batch):
        form = (
            global_batch_norm
            if options.get("batch_norm") == "global"
            else microbatching
        )
        passes = [
            form.encode(encoder, inputs, size, step)
            for encoder, inputs, size in zip(
                stateless(model, **options), batch, sizes, strict=True
            )
        ]
        inputs = [run.embeddings for run in passes] + [model.log_scale.value]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss, _ = losses.contrastive_loss(*inputs)
        *by_embeddings, by_scale = tape.gradient(loss, inputs)
        results = [
            run.backward(gradient)
            for run, gradient in zip(passes, by_embeddings, strict=True)
        ]
        return loss, [*results[0][0], *results[1][0], by_scale], results[0][1]

    return gradients_of(batch)


def variables(model):
    return [
        *model.image_encoder.trainable_variables,
        *model.text_encoder.trainable_variables,
        model.log_scale,
    ]


def tape_over_the_batch(model, batch, training=False):
    images, tokens = batch
    with tf.GradientTape() as tape:
        logits = tf.exp(model.log_scale) * tf.matmul(
            model.encode_image(images, training),
            model.encode_text(tokens, training),
            transpose_b=True,
        )
        labels = tf.range(len(images))
        loss = 0.5 * tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            + tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, tf.transpose(logits)
            )
        )
    gradients = tape.gradient(loss, [v.value for v in variables(model)])
    return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]


def assert_gradients_agree(ours, theirs):
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        other = np.asarray(other)
        # A sum of K float32 parts: 1e-5 of the largest entry.
        np.testing.assert_allclose(
            one, other, rtol=1e-5, atol=1e-5 * abs(other).max(), err_msg=str(index)
        )


# Every example is traced anew: few, and none to make a failing one smaller.
@settings(max_examples=6, phases=[Phase.generate])
@given(SIZES)
def test_every_gradient_is_that_of_the_whole_batch(model, sizes):
    batch_size, *microbatch_sizes = sizes
    batch = make_batch(batch_size)
    loss, gradients, _ = microbatched(
        model, batch, microbatch_sizes, batch_norm="frozen"
    )
    expected_loss, expected = tape_over_the_batch(model, batch)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    assert_gradients_agree(gradients, expected)


def test_the_log_scale_counts_once_and_not_once_a_microbatch(model):
    """open_clip runs the whole loss once a microbatch, and adds its gradients up."""
    batch = make_batch(12)
    *_, ours = microbatched(model, batch, (3, 3), batch_norm="frozen")[1]
    *_, once = tape_over_the_batch(model, batch)[1]
    np.testing.assert_allclose(ours, once, rtol=1e-5)
    images, texts = model.encode_image(batch[0]), model.encode_text(batch[1])
    theirs = 0.0
    for _ in range(4):  # microbatches of 3
        with tf.GradientTape() as tape:
            scale = model.log_scale.value
            tape.watch(scale)
            loss, _ = losses.contrastive_loss(images, texts, tf.identity(scale))
        theirs += tape.gradient(loss, scale)
    np.testing.assert_allclose(theirs, 4 * once, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 1)])
def test_both_passes_draw_the_same_masks(random_model, sizes):
    """One tape over the microbatches in a row, at the same seeds."""
    model, batch = random_model, make_batch(8)
    loss, gradients, _ = microbatched(model, batch, sizes, step=7)
    weights = [v.value for v in variables(model)]
    with tf.GradientTape() as tape:
        embeddings = []
        for encoder, inputs, size in zip(stateless(model), batch, sizes, strict=True):
            values = [variable.value for variable in encoder.weights]
            statistics = encoder.values()[1]
            parts = [
                encoder(values, statistics, inputs[k * size : (k + 1) * size], 7, k)[0]
                for k in range(8 // size)
            ]
            embeddings.append(tf.concat(parts, 0))
        expected_loss, _ = losses.contrastive_loss(*embeddings, model.log_scale.value)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
    expected = [tf.convert_to_tensor(g) for g in tape.gradient(expected_loss, weights)]
    assert_gradients_agree(gradients, expected)


def test_a_step_assigns_nothing(random_model):
    before = [variable.numpy() for variable in random_model.variables]
    microbatched(random_model, make_batch(8), (2, 4))
    for old, variable in zip(before, random_model.variables, strict=True):
        np.testing.assert_array_equal(old, variable.numpy(), err_msg=variable.path)


@pytest.mark.parametrize("size", [3, 12])
def test_statistics_take_one_step_towards_the_mean_of_the_microbatches(model, size):
    images, _ = batch = make_batch(12)
    _, _, statistics = microbatched(model, batch, (size, 12))
    encoder = model.image_encoder
    start, after = encoder.get_weights(), []
    for k in range(12 // size):  # Keras's own update, each from the same start
        encoder(images[k * size : (k + 1) * size], training=True)
        after.append([v.numpy() for v in encoder.non_trainable_weights])
        encoder.set_weights(start)
    expected = [np.mean(values, 0) for values in zip(*after, strict=True)]
    for ours, theirs in zip(statistics, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_one_microbatch_is_the_plain_step(model):
    batch = make_batch(8)
    start = model.get_weights()
    _, expected = tape_over_the_batch(model, batch, training=True)
    moved = [v.numpy() for v in model.image_encoder.non_trainable_weights]
    model.set_weights(start)
    _, gradients, statistics = microbatched(model, batch, (0, 8))
    assert_gradients_agree(gradients, expected)
    for ours, theirs in zip(statistics, moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("size", [1, 2])  # 12 and 6 microbatches: no power of two
def test_frozen_batch_norm_keeps_every_bit_of_its_averages(model, size):
    start = model.get_weights()
    rng = np.random.default_rng(0)
    model.set_weights([w + rng.random(w.shape).astype(np.float32) for w in start])
    _, _, statistics = microbatched(
        model, make_batch(12), (size, 12), batch_norm="frozen"
    )
    kept = model.image_encoder.non_trainable_weights
    for ours, variable in zip(statistics, kept, strict=True):
        np.testing.assert_array_equal(ours, variable.numpy())
    model.set_weights(start)


def test_microbatches_of_a_batch_of_unknown_size_are_refused(model):
    encoder, _ = stateless(model)
    step = tf.function(lambda images: microbatching.encode(encoder, images, 2, 0))
    with pytest.raises(ValueError, match="of a static size: drop a remainder"):
        step.get_concrete_function(tf.TensorSpec((None, 8, 8, 3)))


@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_separable_loss_takes_one_pass_and_has_the_gradient_of_its_mean(model, size):
    images, tokens = make_batch(8)
    targets = tf.one_hot(tokens[:, 0] % small_encoders.DIM, small_encoders.DIM)
    encoder, _ = stateless(model, batch_norm="frozen")

    def loss_of(index, embeddings):
        part = slices.take(targets, index, size)
        loss = tf.reduce_mean(tf.square(embeddings - part))
        return loss, (loss,)

    run = tf.function(microbatching.run_separable)
    gradients, _, (loss,) = run(encoder, images, size, 0, loss_of, 1)
    with tf.GradientTape() as tape:
        expected_loss = tf.reduce_mean(tf.square(model.encode_image(images) - targets))
    expected = tape.gradient(expected_loss, [v.value for v in encoder.weights])
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "size, message",
    [
        (48, "size 48 does not divide batch size 256; use one of 16, 32, 64"),
        (300, "size 300 does not divide batch size 256; use one of 64, 128, 256"),
        (-1, "size -1 does not divide batch size 256; use one of 1, 2, 4"),
    ],
)
def test_a_size_that_does_not_divide_is_refused_with_those_that_do(size, message):
    with pytest.raises(ValueError, match=message):
        microbatching.check_size("microbatch size", size, 256)
