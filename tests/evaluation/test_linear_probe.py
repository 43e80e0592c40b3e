"""Against an exhaustive search, and conditions that hold at the optimum."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.evaluation import linear_probe


def clusters(count, seed, num_classes=3, dim=8, noise=0.9):
    """Unit vectors around as many directions, which overlap."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).normal(size=(num_classes, dim))
    labels = rng.integers(num_classes, size=count)
    features = centers[labels] + noise * rng.normal(size=(count, dim)) * 2
    return features / np.linalg.norm(features, axis=1, keepdims=True), labels


def test_there_are_96_steps_from_1e_minus_6_to_1e6():
    lambdas = linear_probe.LAMBDAS
    assert len(lambdas) == 97
    assert lambdas[[0, -1]] == pytest.approx([1e-6, 1e6])
    np.testing.assert_allclose(lambdas[1:] / lambdas[:-1], 10 ** (1 / 8))


@given(st.integers(0, 96), st.floats(0.1, 3.0), st.floats(0.1, 3.0))
def test_the_search_finds_the_peak_of_a_curve_with_one_in_at_most_15_fits(
    peak, rise, fall
):
    def score(index):
        return -rise * (peak - index) if index < peak else -fall * (index - peak)

    best, scores = linear_probe.search(score)
    assert best == peak
    assert len(scores) <= 15
    assert scores == {index: score(index) for index in scores}


def test_no_lambda_is_tried_twice_and_none_beyond_the_ends():
    for peak in (0, 96, 31):
        tried = []

        def score(index, peak=peak, tried=tried):
            tried.append(index)
            return -abs(index - peak)

        linear_probe.search(score)
        assert len(tried) == len(set(tried))
        assert min(tried) >= 0 and max(tried) <= 96


def test_of_equally_good_lambdas_the_strongest_is_taken():
    assert linear_probe.search(lambda index: 0.5)[0] == 96


def noisy_classes(count, seed, dim=8):
    """Few examples of three classes that overlap: too weak and too strong do harm."""
    centers = np.random.default_rng(0).normal(size=(3, dim))
    labels = np.arange(count) % 3
    noise = np.random.default_rng(seed).normal(size=(count, dim))
    return 0.35 * centers[labels] + noise, labels


def test_the_probe_takes_the_lambda_of_an_exhaustive_search():
    training, validation = noisy_classes(24, seed=0), noisy_classes(300, seed=100)
    result = linear_probe.evaluate(training, validation, validation[0], 3)
    accuracies = []
    for strength in linear_probe.LAMBDAS:
        probe, _ = linear_probe.fit(*training, strength)
        accuracies.append(np.mean(probe.predict(validation[0]) == validation[1]))
    best = max(range(97), key=lambda i: (accuracies[i], i))
    assert result.strength == linear_probe.LAMBDAS[best]
    assert max(accuracies) > max(accuracies[0], accuracies[-1])  # it is inside
    assert len(result.validation_accuracies) == 15
    for strength, accuracy in result.validation_accuracies.items():
        assert accuracy == accuracies[np.abs(linear_probe.LAMBDAS - strength).argmin()]


def test_at_the_optimum_the_gradient_of_the_stated_objective_is_zero():
    features, labels = clusters(50, seed=3)
    strength = 0.3
    probe, converged = linear_probe.fit(features, labels, strength)
    assert converged
    logits = features @ probe.coef_.T + probe.intercept_
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    errors = shares - np.eye(3)[labels]
    # L-BFGS stops at a gradient of 1e-4 times the mean's scale.
    gradient = errors.T @ features + strength * probe.coef_
    np.testing.assert_allclose(gradient, 0, atol=1e-2)
    np.testing.assert_allclose(errors.sum(axis=0), 0, atol=1e-2)


def test_the_last_fit_is_of_training_and_validation_together():
    training, validation = clusters(30, seed=1), clusters(30, seed=2)
    test, _ = clusters(20, seed=3)
    result = linear_probe.evaluate(training, validation, test, 3)
    both = [np.concatenate(pair) for pair in zip(training, validation, strict=True)]
    probe, _ = linear_probe.fit(*both, result.strength)
    shares = scipy.special.softmax(result.scores, axis=1)
    np.testing.assert_allclose(shares, probe.predict_proba(test))


def test_lambda_does_not_depend_on_the_test_examples():
    training, validation = clusters(30, seed=1), clusters(30, seed=2)
    results = [
        linear_probe.evaluate(training, validation, clusters(9, seed)[0], 3)
        for seed in (3, 4)
    ]
    assert results[0].strength == results[1].strength
    assert results[0].validation_accuracies == results[1].validation_accuracies


def test_two_classes_have_two_columns_of_scores():
    training, validation = clusters(30, 1, num_classes=2), clusters(30, 2, 2)
    result = linear_probe.evaluate(training, validation, training[0], 2)
    both = [np.concatenate(pair) for pair in zip(training, validation, strict=True)]
    probe, _ = linear_probe.fit(*both, result.strength)
    shares = scipy.special.softmax(result.scores, axis=1)
    np.testing.assert_allclose(shares, probe.predict_proba(training[0]))


def test_a_class_that_training_lacks_is_never_predicted():
    features, labels = clusters(40, seed=1, num_classes=2)
    labels = 1 + 2 * labels  # classes 1 and 3 of 5
    examples = features, labels
    scores = linear_probe.evaluate(examples, examples, features, 5).scores
    assert scores.shape == (40, 5)
    assert np.isneginf(scores[:, [0, 2, 4]]).all()
    assert np.isfinite(scores[:, [1, 3]]).all()


def test_a_fit_that_is_cut_off_is_kept_and_told(monkeypatch):
    monkeypatch.setattr(linear_probe, "MAX_ITERATIONS", 2)
    examples = clusters(40, seed=1)
    assert not linear_probe.evaluate(examples, examples, examples[0], 3).converged


GOOD = np.eye(3), np.array([0, 1, 2])


@pytest.mark.parametrize(
    "training, validation, message",
    [
        ((np.eye(3), [1, 1, 1]), GOOD, "examples are of one class; a probe needs two"),
        (GOOD, (np.ones((0, 3)), []), r"validation features of shape \(0, 3\)"),
        ((np.eye(3), [0, 1]), GOOD, r"labels of shape \(2,\) must be \[N, D\] and"),
        (
            (np.eye(3), [0, 1, 3]),
            GOOD,
            "training labels from 0 to 3 must be at",
        ),
        (GOOD, (np.eye(3), [0, 1, -1]), "validation labels from -1 to 1 must be at"),
        ((np.full((3, 3), np.nan), [0, 1, 2]), GOOD, "training features are not fin"),
    ],
)
def test_what_cannot_be_fitted_is_refused(training, validation, message):
    with pytest.raises(ValueError, match=message):
        linear_probe.evaluate(training, validation, np.eye(3), num_classes=3)
