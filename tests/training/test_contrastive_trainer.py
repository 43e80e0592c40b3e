import math

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from basic_tf.models import zoo
from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.training import contrastive_trainer
from tests.training import small_encoders, test_microbatching

TEXT_ALONE = (
    ("/image_encoder/", {"train": False}),
    ("/text_encoder/|/log_scale$", {}),
)


@pytest.fixture
def model(tmp_path):
    config = tiny_run.tiny_config(tmp_path).model.to_dict()
    return zoo.build(config, vocabulary_size=50)


def make_batch(size=6):
    rng = np.random.default_rng(0)
    token_ids = rng.integers(3, 50, (size, 7)).astype(np.int32)
    token_ids[1] = token_ids[0]
    return {
        "image": tf.constant(rng.random((size, 32, 32, 3)), tf.float32),
        "token_ids": tf.constant(token_ids),
    }


def fit_one_step(ours, batch, learning_rate):
    ours.compile(keras.optimizers.SGD(learning_rate), jit_compile=False)
    ours.optimizer.build(ours.trained_variables)
    ours.fit(tf.data.Dataset.from_tensors(batch), shuffle=False, verbose=0)


def loop_loss(model, batch, excluded):
    """The loss as a loop over pairs, one softmax at a time."""
    images = model.encode_image(batch["image"], training=True)
    texts = model.encode_text(batch["token_ids"], training=True)
    scale, total, size = tf.exp(model.log_scale), 0.0, len(images)
    for i in range(size):
        for ours, others in ((images, texts), (texts, images)):
            logits = [
                scale * tf.reduce_sum(ours[i] * others[j])
                for j in range(size)
                if i == j or (i, j) not in excluded
            ]
            partner = scale * tf.reduce_sum(ours[i] * others[i])
            total += tf.math.log(tf.add_n([tf.exp(x) for x in logits])) - partner
    return total / (2 * size)


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("form", ["plain", "microbatched", "streaming"])
def test_a_step_follows_the_gradient_of_a_naive_loop(model, monkeypatch, form, exclude):
    batch = make_batch()
    options = {}
    if form == "microbatched":
        options = {"microbatch_image": 2, "microbatch_text": 3, "batch_norm": "global"}
    if form == "streaming":
        monkeypatch.setattr(contrastive_trainer, "MAX_DENSE_BATCH_SIZE", 1)
    with tf.GradientTape() as tape:
        loss = loop_loss(model, batch, {(0, 1), (1, 0)} if exclude else set())
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    before = [v.numpy() for v in variables]
    if exclude:
        batch["caption_ids"] = tf.constant([7, 7, 1, 2, 3, 4])
    fit_one_step(contrastive_trainer.ContrastiveTrainer(model, **options), batch, 0.1)
    for variable, old, gradient in zip(variables, before, gradients, strict=True):
        np.testing.assert_allclose(
            variable.numpy(),
            old - 0.1 * np.asarray(tf.convert_to_tensor(gradient)),
            atol=2e-5,
            err_msg=variable.path,
        )


def test_the_scale_is_at_most_100_after_a_step(model):
    model.log_scale.assign(math.log(200))
    fit_one_step(contrastive_trainer.ContrastiveTrainer(model), make_batch(), 1e-6)
    assert math.exp(float(model.log_scale)) <= 100.001


def test_what_is_not_trained_keeps_every_bit(model):
    before = [v.numpy() for v in model.image_encoder.variables]
    texts = [v.numpy() for v in model.text_encoder.variables]
    ours = contrastive_trainer.ContrastiveTrainer(model, rules=TEXT_ALONE)
    fit_one_step(ours, make_batch(), 0.1)
    for old, variable in zip(before, model.image_encoder.variables, strict=True):
        np.testing.assert_array_equal(old, variable.numpy())
    moved = zip(texts, model.text_encoder.variables, strict=True)
    assert any((old != variable.numpy()).any() for old, variable in moved)


def test_cached_embeddings_give_the_step_of_the_images(model, tmp_path):
    batch = make_batch()
    twin = zoo.build(tiny_run.tiny_config(tmp_path).model.to_dict(), 50)
    twin.set_weights(model.get_weights())
    cached = {
        "image_embedding": model.encode_image(batch["image"]),
        "token_ids": batch["token_ids"],
    }
    for one, data in ((model, batch), (twin, cached)):
        ours = contrastive_trainer.ContrastiveTrainer(one, rules=TEXT_ALONE)
        fit_one_step(ours, data, 0.1)
    for ours, theirs in zip(model.variables, twin.variables, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-6)


def test_rules_that_miss_a_variable_are_refused_by_its_name(model):
    rules = (("/image_encoder/", {}), ("/text_encodr/|/log_scale$", {}))
    with pytest.raises(
        ValueError, match="do not: dual_encoder/text_encoder/token_embedding"
    ):
        contrastive_trainer.ContrastiveTrainer(model, rules=rules)


def test_rules_that_train_nothing_are_refused(model):
    with pytest.raises(ValueError, match="leave no variable to train"):
        contrastive_trainer.ContrastiveTrainer(model, rules=((".", {"train": False}),))


def test_a_scale_that_is_not_trained_keeps_its_value(model):
    model.log_scale.assign(math.log(200))
    rules = (("/image_encoder/|/text_encoder/", {}), ("log_scale$", {"train": False}))
    fit_one_step(
        contrastive_trainer.ContrastiveTrainer(model, rules=rules), make_batch(), 1e-6
    )
    assert float(model.log_scale) == np.float32(math.log(200))


def test_embeddings_cannot_train_the_encoder_they_come_from(model):
    batch = make_batch()
    batch["image_embedding"] = model.encode_image(batch.pop("image"))
    with pytest.raises(ValueError, match="embeddings cannot train their encoder"):
        fit_one_step(contrastive_trainer.ContrastiveTrainer(model), batch, 0.1)


@pytest.mark.parametrize("size", [0, 2])
def test_a_step_in_bfloat16_is_close_to_the_one_in_float32(tmp_path, size):
    batch, losses, gradients = make_batch(), [], []
    for precision in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        config = tiny_run.tiny_config(tmp_path).model.to_dict()
        model = zoo.build(config | {"precision": precision}, 50)
        before = [v.numpy() for v in model.trainable_variables]
        ours = contrastive_trainer.ContrastiveTrainer(
            model, microbatch_image=size, microbatch_text=size
        )
        ours.compile(keras.optimizers.SGD(1.0), jit_compile=False)
        ours.optimizer.build(ours.trained_variables)
        losses.append(float(tf.function(ours.train_step)(batch)["loss"]))
        assert {v.dtype for v in model.trainable_variables} == {"float32"}
        gradients.append(
            np.concatenate(
                [
                    (old - v.numpy()).ravel()
                    for old, v in zip(before, model.trainable_variables, strict=True)
                ]
            )
        )
    assert keras.config.dtype_policy().name == "float32"
    np.testing.assert_allclose(*losses, rtol=0.05)  # of 8 bits a product
    plain, rounded = gradients
    cosine = plain @ rounded / np.linalg.norm(plain) / np.linalg.norm(rounded)
    assert 0.98 < cosine < 1 - 1e-7


@pytest.mark.parametrize("accumulate", ["buffer", "slots"])
def test_the_whole_step_compiles_with_xla(accumulate):
    """What a TPU needs: static shapes, and no operation that XLA has not."""
    losses, moments, weights = [], [], []
    for jit_compile in (False, True):
        keras.utils.set_random_seed(0)
        model = small_encoders.build()  # XLA draws other masks
        ours = contrastive_trainer.ContrastiveTrainer(
            model, microbatch_image=4, microbatch_text=2, accumulate=accumulate
        )
        optimizer = AdaFactorW(1e-2, decay=0.1)
        ours.compile(optimizer, jit_compile=False)
        optimizer.build(ours.trained_variables)
        step = tf.function(ours.train_step, jit_compile=jit_compile)
        images, tokens = test_microbatching.make_batch(8)
        losses.append(float(step({"image": images, "token_ids": tokens})["loss"]))
        trained = ours.trained_variables
        moments.append([np.float32(optimizer.slots(v)[0].numpy()) for v in trained])
        weights.append([v.numpy() for v in trained])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    for plain, compiled in zip(*moments, strict=True):
        # Of bfloat16 moments.
        np.testing.assert_allclose(compiled, plain, atol=1e-2 * abs(plain).max())
    for plain, compiled in zip(*weights, strict=True):
        # Of a step of 1e-2: the first one comes from float32 moments, whose sums XLA
        # takes in another order; a sign that differed would be 2 steps.
        np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-3 * 1e-2)
