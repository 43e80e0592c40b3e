"""Recorded steps of SimCLR's optimizer give the update."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.optimizers.lars import LARS

ORACLES = pathlib.Path(__file__).parent.parent / "oracles" / "optimizers.npz"


@pytest.mark.parametrize("name", ["matrix", "conv"])
def test_steps_agree_with_the_recorded_lars_of_simclr(name):
    recorded = np.load(ORACLES)
    optimizer = LARS(0.1, decay=1e-4)
    variable = keras.Variable(recorded[f"start/{name}"], name="kernel")
    optimizer.build([variable])
    for step in range(5):
        optimizer.apply([tf.constant(recorded[f"grad/{step}/{name}"])], [variable])
        expected = recorded[f"simclr_lars/{step}/{name}"]
        np.testing.assert_allclose(variable, expected, rtol=2e-6, atol=1e-7)


def test_a_bias_takes_the_step_of_momentum_sgd():
    ours, theirs = LARS(0.1, decay=0.5), keras.optimizers.SGD(0.1, momentum=0.9)
    variables = [keras.Variable([1.0, -2.0], name="bias") for _ in range(2)]
    for optimizer, variable in zip((ours, theirs), variables, strict=True):
        optimizer.build([variable])
    for gradient in ([1.0, 2.0], [0.5, -1.0], [0.0, 3.0]):
        ours.apply([tf.constant(gradient)], variables[:1])
        theirs.apply([tf.constant(gradient)], variables[1:])
    np.testing.assert_allclose(*(v.numpy() for v in variables), rtol=1e-6)


@pytest.mark.parametrize("weight, gradient", [(0.0, 1.0), (1.0, 0.0)])
def test_a_norm_of_zero_leaves_the_rate_as_it_is(weight, gradient):
    optimizer = LARS(0.1)
    variable = keras.Variable(np.full((2, 2), weight), name="kernel", dtype="float32")
    optimizer.build([variable])
    optimizer.apply([tf.fill((2, 2), gradient)], [variable])
    np.testing.assert_allclose(variable, weight - 0.1 * gradient, rtol=1e-6)


def test_a_config_round_trip_makes_the_same_optimizer():
    config = LARS(0.5, 0.8, 0.1, (("k", {"decay": 2.0}),), 1e-2).get_config()
    assert LARS.from_config(config).get_config() == config
