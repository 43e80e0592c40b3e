"""Against the same steps in NumPy, float64."""

import keras
import numpy as np
import pytest

from basic_tf.evaluation import linear_evaluation


def clusters(count=24, dim=5, num_classes=3, noise=0.3):
    rng = np.random.default_rng(0)
    labels = np.arange(count) % num_classes
    features = rng.normal(size=(num_classes, dim))[labels]
    features += noise * rng.normal(size=features.shape)
    return features / np.linalg.norm(features, axis=1, keepdims=True), labels


def numpy_steps(features, labels, num_classes, rate, steps):
    """Nesterov's momentum on the mean cross-entropy of all examples, from zero."""
    inputs = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    weights = np.zeros((inputs.shape[1], num_classes))
    velocity = np.zeros_like(weights)
    for _ in range(steps):
        logits = inputs @ weights
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        gradient = inputs.T @ (shares - np.eye(num_classes)[labels]) / len(labels)
        velocity = 0.9 * velocity - rate * gradient
        weights += 0.9 * velocity - rate * gradient
    return weights


@pytest.mark.parametrize("epochs", [1, 7, 90])
def test_steps_of_whole_batches_are_those_of_numpy(epochs):
    features, labels = clusters()
    model = linear_evaluation.train(features, labels, 3, epochs=epochs)
    expected = numpy_steps(features, labels, 3, rate=0.1 * 24 / 256, steps=epochs)
    kernel, bias = model.get_weights()
    # Float32 sums of 24 examples in another order.
    np.testing.assert_allclose(kernel, expected[:-1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(bias, expected[-1], rtol=1e-4, atol=1e-6)


def test_the_rate_is_1_6_at_the_batch_of_the_paper_and_in_proportion(monkeypatch):
    rates = []
    optimizer = keras.optimizers.SGD

    def record(rate, **options):
        rates.append(rate)
        return optimizer(rate, **options)

    monkeypatch.setattr(keras.optimizers, "SGD", record)
    features, labels = np.eye(2)[np.arange(5000) % 2], np.arange(5000) % 2
    linear_evaluation.train(features, labels, 2, epochs=1)
    linear_evaluation.train(features, labels, 2, batch_size=512, epochs=1)
    assert rates == pytest.approx([1.6, 0.2])


def test_separable_classes_are_learned_in_small_batches():
    features, labels = clusters(noise=0.05)
    model = linear_evaluation.train(features, labels, 4, batch_size=7, epochs=100)
    logits = model.predict(features, verbose=0)
    assert logits.shape == (24, 4)
    assert (logits.argmax(axis=1) == labels).all()


def test_a_seed_repeats_and_keras_own_seed_is_not_asked():
    features, labels = clusters()
    kernels = []
    for seed in (0, 0, 1):
        keras.utils.set_random_seed(len(kernels))
        model = linear_evaluation.train(features, labels, 3, 8, epochs=2, seed=seed)
        kernels.append(model.get_weights()[0])
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert np.abs(kernels[0] - kernels[2]).max() > 1e-6


def test_a_classifier_that_diverges_is_an_error():
    features, labels = clusters()
    with pytest.raises(FloatingPointError, match=r"rate 0\.009375; scale the features"):
        linear_evaluation.train(1e30 * features, labels, 3)


@pytest.mark.parametrize(
    "features, labels, message",
    [
        (np.ones((0, 3)), [], r"shape \(0, 3\) and labels of shape \(0,\) must be"),
        (np.ones((2, 3)), [0], r"labels of shape \(1,\) must be \[N, D\] and \[N\]"),
        (np.ones((2, 3)), [0, 2], "labels from 0 to 2 must be .* num_classes 2"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(features, labels, message):
    with pytest.raises(ValueError, match=message):
        linear_evaluation.train(features, labels, num_classes=2)
