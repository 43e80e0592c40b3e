"""Recorded steps of torch, and Keras's own AdamW, give the update."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.optimizers.adamw import AdamW

ORACLES = pathlib.Path(__file__).parent.parent / "oracles" / "optimizers.npz"


@pytest.mark.parametrize("name", ["matrix", "conv"])
def test_six_steps_agree_with_the_recorded_adamw_of_torch(name):
    recorded = np.load(ORACLES)
    optimizer = AdamW(1e-2, beta_2=0.98, epsilon=1e-6, decay=0.2)
    variable = keras.Variable(recorded[f"start/{name}"], name="kernel")
    optimizer.build([variable])
    for step in range(6):
        optimizer.apply([tf.constant(recorded[f"grad/{step}/{name}"])], [variable])
        expected = recorded[f"torch_adamw/{step}/{name}"]
        np.testing.assert_allclose(variable, expected, rtol=2e-6, atol=1e-6)


def test_a_bias_takes_the_step_of_keras_without_decay():
    rng = np.random.default_rng(0)
    start = rng.normal(size=5).astype("float32")
    ours, theirs = AdamW(1e-2, decay=0.2), keras.optimizers.Adam(1e-2, epsilon=1e-8)
    variables = [keras.Variable(start, name="bias") for _ in range(2)]
    for optimizer, variable in zip((ours, theirs), variables, strict=True):
        optimizer.build([variable])
    for _ in range(5):
        gradient = tf.constant(rng.normal(size=5), tf.float32)
        ours.apply([gradient], variables[:1])
        theirs.apply([gradient], variables[1:])
    np.testing.assert_allclose(*(v.numpy() for v in variables), rtol=1e-5)


def test_a_config_round_trip_makes_the_same_optimizer():
    config = AdamW(0.5, 0.8, 0.7, 0.1, (("k", {"decay": 2.0}),), 1e-3).get_config()
    assert AdamW.from_config(config).get_config() == config
