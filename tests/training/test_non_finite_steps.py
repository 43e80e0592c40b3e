"""A step whose loss or gradient is not finite leaves everything as it was."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

from basic_tf.models.dual_encoder import DualEncoder
from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.optimizers.adamw import AdamW
from basic_tf.optimizers.lars import LARS
from basic_tf.training.contrastive_trainer import ContrastiveTrainer
from basic_tf.training.supervised_trainer import SupervisedTrainer
from tests.training import small_encoders


def make_batch(seed=0):
    rng = np.random.default_rng(seed)
    size = small_encoders.IMAGE_SIZE
    return {
        "image": rng.random((8, size, size, 3), np.float32),
        "token_ids": rng.integers(0, small_encoders.VOCABULARY, (8, 4)),
        "labels": np.eye(3, dtype=np.float32)[rng.integers(0, 3, 8)],
    }


def make(trainer, optimizer, model=None):
    keras.utils.set_random_seed(0)
    model = model or small_encoders.build(dropout=0.3)
    if trainer is ContrastiveTrainer:
        ours = ContrastiveTrainer(model, microbatch_image=2)
    else:
        model.image_encoder.embedding_dim = small_encoders.DIM
        ours = SupervisedTrainer(model, 3)
    optimizer.build(ours.trained_variables)
    ours.compile(optimizer, jit_compile=False)
    return ours, tf.function(ours.train_step)


def values(ours):
    variables = [*ours.dual_encoder.variables, *ours.optimizer.variables]
    return [np.copy(v.numpy()) for v in variables if "seed" not in v.path]


@pytest.mark.parametrize(
    ("trainer", "optimizer"),
    [
        (ContrastiveTrainer, AdaFactorW),
        (SupervisedTrainer, AdamW),
        (SupervisedTrainer, LARS),
    ],
)
def test_it_changes_nothing_and_is_counted(trainer, optimizer):
    ours, step = make(trainer, optimizer(0.01, decay=0.1))
    theirs, other_step = make(trainer, optimizer(0.01, decay=0.1))
    bad = make_batch(1)
    bad["image"][3, 0, 0, 0] = np.nan
    step(make_batch(0))
    before = values(ours)
    logs = step(bad)
    assert logs["non_finite_steps"] == 1
    for one, other in zip(values(ours), before, strict=True):
        np.testing.assert_array_equal(one, other)
    # The next step knows nothing of it, either.
    logs = step(make_batch(2))
    other_step(make_batch(0))
    other_logs = other_step(make_batch(2))
    for one, other in zip(values(ours), values(theirs), strict=True):
        np.testing.assert_array_equal(one, other)
    assert logs["loss"] == other_logs["loss"] and logs["non_finite_steps"] == 1


def test_a_gradient_that_is_not_finite_is_found_where_the_loss_is():
    images = layers.Input((2,))
    x = layers.Dense(3, use_bias=False, name="dense")(images)
    x = ops.sqrt(ops.abs(x)) + 1.0  # of slope infinity at zero
    encoder = keras.Model(images, x, name="image_encoder")
    encoder.image_size = 0
    ids = layers.Input((4,), dtype="int32")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(20, 3)(ids))
    texts = keras.Model(ids, x, name="text_encoder")
    model = DualEncoder(encoder, texts)
    model.build()
    ours, step = make(ContrastiveTrainer, AdaFactorW(0.01), model)
    before = values(ours)
    batch = make_batch() | {"image": np.zeros((8, 2), np.float32)}
    logs = step(batch)
    assert logs["non_finite_steps"] == 1
    for one, other in zip(values(ours), before, strict=True):
        np.testing.assert_array_equal(one, other)
    logs = step(batch | {"image": np.ones((8, 2), np.float32)})
    assert logs["non_finite_steps"] == 1 and np.isfinite(logs["loss"])
