"""The linear probe of CLIP (section A.3): logistic regression on fixed features."""

import dataclasses
import warnings

import numpy as np
from sklearn import exceptions, linear_model

MAX_ITERATIONS = 1000
STEPS_PER_DECADE = 8
COARSE_STEP = 16  # two decades
# 1e-6 to 1e6 in 96 logarithmic steps.
LAMBDAS = np.logspace(-6, 6, 12 * STEPS_PER_DECADE + 1)


@dataclasses.dataclass(frozen=True)
class ProbeResult:
    """A probe and how it did.

    Attributes:
        strength: lambda, of `LAMBDAS`.
        validation_accuracies: `{lambda: accuracy}` of all that were tried, from the
            weakest to the strongest.
        scores: `[T, C]` float, logits of the test examples; minus infinity for classes
            that the training examples lack.
        converged: whether L-BFGS came to an end within `MAX_ITERATIONS` in the last
            fit; CLIP's probe goes on with where it stopped, too.
    """

    strength: float
    validation_accuracies: dict
    scores: np.ndarray
    converged: bool


def evaluate(training, validation, test_features, num_classes):
    """Chooses lambda on validation, fits on both again, scores the test examples.

    What is minimised is `sum of cross-entropies + lambda / 2 ||W||^2`; biases are free.
    The test labels are not asked for.

    Args:
        training: `(features [N, D] float, labels [N] int)`.
        validation: the same, of other examples.
        test_features: `[T, D]` float.
        num_classes: C; labels are below it.

    Returns:
        `ProbeResult`.

    Raises:
        ValueError: for training examples of fewer than two classes, no validation
            example, a label out of range, and features that are not finite.
    """
    training = _check("training", training, num_classes)
    validation = _check("validation", validation, num_classes)
    if len(np.unique(training[1])) < 2:
        raise ValueError("the training examples are of one class; a probe needs two")

    def accuracy(index):
        probe, _ = fit(*training, LAMBDAS[index])
        return float(np.mean(probe.predict(validation[0]) == validation[1]))

    best, accuracies = search(accuracy)
    both = [np.concatenate(arrays) for arrays in zip(training, validation, strict=True)]
    probe, converged = fit(*both, LAMBDAS[best])
    scores = np.full((len(test_features), num_classes), -np.inf)
    scores[:, probe.classes_] = _logits(probe, np.asarray(test_features, np.float64))
    return ProbeResult(
        strength=float(LAMBDAS[best]),
        validation_accuracies={
            float(LAMBDAS[index]): accuracies[index] for index in sorted(accuracies)
        },
        scores=scores,
        converged=converged,
    )


def search(score):
    """The best lambda, by halving the interval around the peak (CLIP section A.3).

    Seven lambdas two decades apart come first; then the two at half the distance to
    either side of the best so far, and so on to eight steps a decade: 15 fits for 97.
    Where `score` rises to one peak and falls, that is the best of all.

    Args:
        score: from an index into `LAMBDAS` to a number, larger is better.

    Returns:
        The index, of equally good ones the largest (the strongest regularisation), and
        `{index: score}` of all that were tried.
    """
    scores = {i: score(i) for i in range(0, len(LAMBDAS), COARSE_STEP)}

    def best():
        return max(scores, key=lambda i: (scores[i], i))

    step = COARSE_STEP // 2
    while step:
        center = best()
        for i in (center - step, center + step):
            if 0 <= i < len(LAMBDAS):
                scores[i] = score(i)
        step //= 2
    return best(), scores


def fit(features, labels, strength):
    """Logistic regression by L-BFGS.

    Args:
        features: `[N, D]` float.
        labels: `[N]` int.
        strength: lambda.

    Returns:
        The fitted `LogisticRegression`, and whether it converged.
    """
    probe = linear_model.LogisticRegression(C=1 / strength, max_iter=MAX_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        probe.fit(features, labels)
    return probe, bool(np.all(probe.n_iter_ < MAX_ITERATIONS))


def _logits(probe, features):
    """`[N, classes]`; scikit-learn gives those of two classes as one column."""
    logits = probe.decision_function(features)
    return logits if logits.ndim == 2 else np.stack([0 * logits, logits], axis=1)


def _check(name, examples, num_classes):
    features, labels = np.asarray(examples[0], np.float64), np.asarray(examples[1])
    if not len(labels) or features.shape[:1] != labels.shape:
        raise ValueError(
            f"{name} features of shape {features.shape} and labels of shape "
            f"{labels.shape} must be [N, D] and [N], N >= 1"
        )
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"{name} labels from {labels.min()} to {labels.max()} must be at least 0 "
            f"and below num_classes {num_classes}"
        )
    if not np.isfinite(features).all():
        raise ValueError(f"{name} features are not finite")
    return features, labels
