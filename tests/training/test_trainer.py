"""Metrics, steps and rules of a trainer that trains one number."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.training import trainer


class Means(trainer.Trainer):
    """Reports the mean and the square of a batch, and how it was told to encode it."""

    metric_names = ("loss", "square")

    def __init__(self):
        super().__init__()
        self.steps = []
        self.built = True

    def train_step(self, batch):
        self._encode("encoder", batch, 2, self.note, loss="ours")
        self.optimizer.iterations.assign_add(1)
        mean = tf.reduce_mean(batch)
        finite = tf.math.is_finite(mean)
        return self._report({"loss": mean, "square": mean**2}, finite)

    def note(self, *arguments, replicas, loss):
        self.steps.append((*arguments[:1], int(arguments[3]), replicas.count, loss))


def fit(batches, epochs=1):
    ours = Means()
    ours.compile(keras.optimizers.SGD(), run_eagerly=True)
    data = tf.data.Dataset.from_tensor_slices(batches).repeat()
    return ours, ours.fit(
        data, steps_per_epoch=2, epochs=epochs, shuffle=False, verbose=0
    )


def test_an_epoch_reports_the_means_of_its_own_batches():
    batches = np.float32([[1, 2], [3, 6], [0, 1], [5, 5]])
    _, fitted = fit(batches, epochs=2)
    means = batches.mean(1)
    np.testing.assert_allclose(
        fitted.history["loss"], [means[:2].mean(), means[2:].mean()]
    )
    squares = means**2
    np.testing.assert_allclose(
        fitted.history["square"], [squares[:2].mean(), squares[2:].mean()]
    )


def test_an_encoder_is_told_the_step_that_the_optimizer_is_at():
    ours, _ = fit(np.zeros((2, 2), np.float32), epochs=2)
    assert ours.steps == [("encoder", step, 1, "ours") for step in range(4)]


@dataclasses.dataclass(frozen=True)
class Variable:
    path: str


def test_those_that_the_rules_train_keep_their_order():
    variables = [Variable(path) for path in ("b/kernel", "a/bias", "a/kernel", "c")]
    rules = (("^b|^c", {"learning_rate": 0.0}), ("bias", {}), ("a/k", {"train": False}))
    assert trainer.trained_by(variables, rules) == [
        Variable(path) for path in ("b/kernel", "a/bias", "c")
    ]


@pytest.mark.parametrize("condition", [True, False])
def test_variables_take_their_values_where_a_condition_holds(condition):
    variables = [keras.Variable([1.0, 2.0]), keras.Variable(3, dtype="int32")]
    trainer.assign_if(tf.constant(condition), variables, [[5.0, 6.0], 7])
    expected = ([5, 6], 7) if condition else ([1, 2], 3)
    for variable, value in zip(variables, expected, strict=True):
        np.testing.assert_array_equal(variable, value)
    with pytest.raises(ValueError, match="shorter than argument 1"):
        trainer.assign_if(tf.constant(condition), variables, [[0.0, 0.0]])


@pytest.mark.parametrize("value", [np.nan, -np.inf, 2e19])
def test_a_value_without_a_finite_square_is_found(value):
    good = tf.constant([[1.0, -1e18], [0.0, 3.0]])
    assert trainer.all_finite([good, tf.constant(0.0)])
    assert not trainer.all_finite([good, tf.constant([1.0, value])])


def test_batches_that_are_not_finite_are_left_out_of_the_means():
    _, fitted = fit(np.float32([[1, 2], [np.nan, 1]]))
    np.testing.assert_allclose(fitted.history["loss"], [1.5])
    assert fitted.history["non_finite_steps"] == [1.0]
