import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from basic_tf.models import zoo
from basic_tf.training import supervised_trainer
from tests.training.test_contrastive_trainer import fit_one_step, make_batch


@pytest.fixture
def model(tmp_path):
    config = tiny_run.tiny_config(tmp_path).model.to_dict()
    return zoo.build(config, vocabulary_size=50)


@pytest.mark.parametrize("size, batch_norm", [(0, "microbatch"), (2, "global")])
def test_phase_one_moves_the_image_encoder_alone(model, size, batch_norm):
    labels = np.zeros((6, 4), np.float32)
    labels[np.arange(6), [0, 1, 2, 3, 0, 1]] = 1
    kept = [*model.text_encoder.variables, model.log_scale]
    kept_before = [v.numpy() for v in kept]
    ours = supervised_trainer.SupervisedTrainer(
        model, 4, microbatch_image=size, batch_norm=batch_norm
    )
    trained = [*model.image_encoder.trainable_variables, ours.classifier.kernel]
    before = [v.numpy() for v in trained]
    batch = {"image": make_batch()["image"], "labels": tf.constant(labels)}
    with tf.GradientTape() as tape:
        logits = ours(batch["image"], training=True)
        picked = tf.gather(tf.nn.softmax(logits), labels.argmax(1), batch_dims=1)
        loss = -tf.reduce_mean(tf.math.log(picked))
    gradients = tape.gradient(loss, [v.value for v in trained])
    fit_one_step(ours, batch, 0.1)
    for variable, old, gradient in zip(trained, before, gradients, strict=True):
        np.testing.assert_allclose(
            variable.numpy(), old - 0.1 * gradient, atol=1e-5, err_msg=variable.path
        )
    for old, variable in zip(kept_before, kept, strict=True):
        np.testing.assert_array_equal(old, variable.numpy())


def test_a_rule_freezes_a_part_of_the_encoder(model):
    rules = (("/stage1", {"train": False}), ("/(stage[02]|head)|classifier", {}))
    ours = supervised_trainer.SupervisedTrainer(model, 4, rules)
    before = {v.path: v.numpy() for v in model.image_encoder.trainable_variables}
    batch = {"image": make_batch()["image"], "labels": tf.eye(6)[:, :4]}
    fit_one_step(ours, batch, 0.1)
    moved = {
        variable.path
        for variable in model.image_encoder.trainable_variables
        if (before[variable.path] != variable.numpy()).any()
    }
    assert moved and not any("/stage1" in path for path in moved)


def test_a_classifier_alone_leaves_every_variable_of_the_encoder(model):
    rules = (("/image_encoder/", {"train": False}), ("classifier", {}))
    ours = supervised_trainer.SupervisedTrainer(model, 4, rules)
    before = [v.numpy() for v in model.image_encoder.variables]
    kernel = ours.classifier.kernel.numpy()
    images = make_batch()["image"]
    logits = ours(images, training=False)
    labels = tf.eye(6)[:, :4]
    fit_one_step(ours, {"image": images, "labels": labels}, 0.1)
    for variable, old in zip(model.image_encoder.variables, before, strict=True):
        np.testing.assert_array_equal(variable, old, err_msg=variable.path)
    # Features times (softmax - label), of the rows that have one.
    features = model.image_encoder(images, training=False)
    slopes = (tf.nn.softmax(logits)[:4] - labels[:4]) / 6
    gradient = tf.matmul(features[:4], slopes, transpose_a=True)
    expected = kernel - 0.1 * gradient
    np.testing.assert_allclose(ours.classifier.kernel, expected, atol=1e-5)


def test_of_equally_high_logits_the_first_one_counts(model):
    ours = supervised_trainer.SupervisedTrainer(model, 4)
    ours.classifier.kernel.assign(tf.zeros_like(ours.classifier.kernel))
    ours.classifier.bias.assign([0.0, 1.0, 1.0, 0.0])
    labels = tf.constant([[0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 0]] * 2, tf.float32)
    ours.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    logs = ours.train_step({"image": make_batch()["image"], "labels": labels})
    np.testing.assert_allclose(logs["accuracy"], 2 / 3, rtol=1e-6)
