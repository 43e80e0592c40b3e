import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from basic_tf.evaluation import metrics


@pytest.fixture(scope="module")
def outcome():
    rng = np.random.default_rng(0)
    return rng.integers(0, 12, 500), rng.normal(size=(500, 12))


def test_equals_scikit_learn(outcome):
    labels, scores = outcome
    ours = metrics.classification_metrics(labels, scores)
    for k in (1, 5):
        expected = sklearn_metrics.top_k_accuracy_score(
            labels, scores, k=k, labels=range(12)
        )
        assert ours[f"top{k}"] == pytest.approx(expected)
    predictions = scores.argmax(axis=1)
    assert ours["mean_per_class_recall"] == pytest.approx(
        sklearn_metrics.balanced_accuracy_score(labels, predictions)
    )


def test_a_permutation_of_the_classes_changes_nothing(outcome):
    labels, scores = outcome
    order = np.random.default_rng(1).permutation(12)
    permuted = metrics.classification_metrics(
        np.argsort(order)[labels], scores[:, order]
    )
    assert permuted == metrics.classification_metrics(labels, scores)


def test_of_equal_scores_the_first_class_wins():
    scores = np.zeros((2, 7))
    ours = metrics.classification_metrics([0, 6], scores)
    assert (ours["top1"], ours["top5"]) == (0.5, 0.5)


def test_three_classes_have_a_top5_of_one(outcome):
    scores = np.random.default_rng(2).normal(size=(9, 3))
    assert metrics.classification_metrics([0, 1, 2] * 3, scores)["top5"] == 1


def test_a_class_without_an_example_does_not_count():
    scores = np.eye(3)[[0, 0, 1]]
    ours = metrics.classification_metrics([0, 0, 1], scores)
    assert ours["mean_per_class_recall"] == 1


def test_an_empty_split_is_refused():
    with pytest.raises(ValueError, match="no example"):
        metrics.classification_metrics([], np.zeros((0, 3)))
