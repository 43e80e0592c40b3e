"""A step follows the gradient of SimCLR's algorithm 1, in parts and over replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from test_streaming_loss import in_lockstep

from basic_tf import losses, streaming_nt_xent
from basic_tf.training import (
    contrastive_trainer,
    global_batch_norm,
    microbatching,
    simclr_trainer,
)
from tests.training import small_encoders

LABELS = tf.constant(np.eye(3, dtype=np.float32)[[0, 1, 2, 0]])


def make_trainer(dropout=0.0, **options):
    keras.utils.set_random_seed(0)
    model = small_encoders.build(dropout)
    return simclr_trainer.SimCLRTrainer(model, head_dim=5, temperature=0.5, **options)


def make_batch(size=4):
    side = small_encoders.IMAGE_SIZE
    images = np.random.default_rng(0).random((size, 2, side, side, 3), np.float32)
    return {"image": tf.constant(images), "labels": LABELS[:size]}


def take_step(trainer, batch, rate=0.1):
    trainer.compile(keras.optimizers.SGD(rate), jit_compile=False)
    trainer.optimizer.build(trainer.trained_variables)
    return trainer.train_step(batch)


def algorithm_1(trainer, images):
    """The loss of `[N, 2, H, W, 3]`, a pair of views at a time."""
    views = tf.reshape(images, (-1, *images.shape[2:]))
    z = trainer(views, training=True)
    total = 0.0
    for i in range(len(z)):
        logits = tf.linalg.matvec(z, z[i]) / trainer.temperature
        others = tf.concat([logits[:i], logits[i + 1 :]], 0)
        total += tf.reduce_logsumexp(others) - logits[i ^ 1]
    return total / len(z)


@pytest.mark.parametrize("form", ["plain", "microbatched", "streaming"])
@pytest.mark.parametrize("head_layers", [0, 2])
def test_a_step_follows_the_gradient_of_algorithm_1(monkeypatch, form, head_layers):
    trainer = make_trainer(
        microbatch_image=2 if form == "microbatched" else 0, head_layers=head_layers
    )
    if form == "streaming":
        monkeypatch.setattr(contrastive_trainer, "MAX_DENSE_BATCH_SIZE", 1)
    batch, variables = make_batch(), trainer.trained_variables
    before = [v.numpy() for v in variables]
    with tf.GradientTape() as tape:
        loss = algorithm_1(trainer, batch["image"])
    gradients = tape.gradient(loss, [v.value for v in variables])
    # The loop above has moved the moving averages, which training does not read.
    results = take_step(trainer, batch)
    np.testing.assert_allclose(results["loss"], loss, rtol=1e-5)
    for variable, old, gradient in zip(variables, before, gradients, strict=True):
        expected = old - 0.1 * np.asarray(tf.convert_to_tensor(gradient))
        np.testing.assert_allclose(
            variable.numpy(), expected, atol=2e-5, err_msg=variable.path
        )


def test_masks_are_the_same_in_both_passes():
    """The step of microbatches is that of their masks and statistics in one graph."""
    trainer = make_trainer(0.3, microbatch_image=2, batch_norm="microbatch")
    batch, encoder = make_batch(), trainer._encoder
    views = tf.reshape(batch["image"], (8, *batch["image"].shape[2:]))
    weights, statistics = encoder.values()
    with microbatching.watching(weights) as tape:
        parts = [
            encoder(weights, statistics, views[4 * k : 4 * k + 4], 0, k)[0]
            for k in range(2)
        ]
        embeddings, _ = trainer.projected.split(tf.concat(parts, 0))
        loss, _ = losses.nt_xent_loss(embeddings, 0.5)
    gradients = tape.gradient(loss, weights)
    take_step(trainer, batch)
    for variable, old, gradient in zip(
        encoder.weights, weights, gradients, strict=True
    ):
        expected = old - 0.1 * tf.convert_to_tensor(gradient)
        np.testing.assert_allclose(variable.numpy(), expected, atol=2e-6)


def test_the_probe_learns_and_leaves_the_encoder_as_it_would_be_without():
    batch = make_batch()
    with_probe, without = make_trainer(num_classes=3), make_trainer()
    for _ in range(2):
        results = take_step(with_probe, batch)
        take_step(without, batch)
    assert 0 <= results["probe_accuracy"] <= 1
    pairs = zip(with_probe.projected.weights, without.projected.weights, strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    views = tf.reshape(batch["image"], (8, *batch["image"].shape[2:]))
    fresh = make_trainer(num_classes=3)
    kernel, bias = (v.numpy() for v in fresh.probe.trainable_variables)
    features = fresh.projected(views, training=True)[:, 5:].numpy()
    labels = np.repeat(LABELS, 2, axis=0)
    logits = features @ kernel + bias
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    take_step(fresh, batch)
    expected = kernel - 0.1 * features.T @ (softmax - labels) / 8
    np.testing.assert_allclose(fresh.probe.kernel.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("batch_norm", ["microbatch", "global"])
def test_statistics_of_a_replica_alone_leak_which_images_share_it(batch_norm):
    """A batch in another order over replicas is the same only to global statistics."""
    forms = {"microbatch": microbatching, "global": global_batch_norm}
    # One each, of equal weights, as threads must not share layers.
    encoders = [make_trainer(batch_norm=batch_norm)._encoder for _ in range(2)]

    def loss(images):
        views = tf.reshape(images, (-1, *images.shape[2:]))

        def run(replicas):
            own = tf.split(views, replicas.count)[replicas.index]
            encode, encoder = forms[batch_norm].encode, encoders[replicas.index]
            embeddings = encode(encoder, own, 0, 0, replicas=replicas).embeddings
            form = streaming_nt_xent.streaming_nt_xent_loss
            return form(embeddings[:, :5], 0.5, replicas=replicas)[0]

        return float(in_lockstep(2, run)[0])

    images = make_batch()["image"]
    images *= tf.reshape([0.2, 0.4, 0.7, 1.0], (4, 1, 1, 1, 1))  # not all alike
    moved = loss(tf.gather(images, [0, 2, 1, 3])) - loss(images)
    assert abs(moved) < 1e-5 if batch_norm == "global" else abs(moved) > 1e-3


def test_a_microbatch_that_does_not_divide_the_batch_is_refused():
    with pytest.raises(ValueError, match="microbatch size 3 does not divide batch"):
        take_step(make_trainer(microbatch_image=3), make_batch())
