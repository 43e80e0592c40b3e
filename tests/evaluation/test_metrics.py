import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from basic_tf.evaluation import metrics


@pytest.fixture(scope="module")
def outcome():
    rng = np.random.default_rng(0)
    return rng.integers(0, 12, 500), rng.normal(size=(500, 12)).astype(np.float32)


def test_equals_scikit_learn(outcome):
    labels, scores = outcome
    ours = metrics.classification_metrics(labels, scores)
    for k in (1, 5):
        expected = sklearn_metrics.top_k_accuracy_score(
            labels, scores, k=k, labels=range(12)
        )
        assert ours[f"top{k}"] == pytest.approx(expected, rel=1e-12)
    predictions = scores.argmax(axis=1)
    assert ours["mean_per_class_recall"] == pytest.approx(
        sklearn_metrics.balanced_accuracy_score(labels, predictions), rel=1e-12
    )


def test_weighted_recall_equals_scikit_learns(outcome):
    labels, scores = outcome
    predictions = scores.argmax(axis=1)
    weights = np.random.default_rng(1).integers(0, 4, len(labels))
    ours = metrics.mean_per_class_recall(labels, predictions == labels, weights)
    expected = sklearn_metrics.recall_score(
        labels, predictions, average="macro", sample_weight=weights
    )
    assert ours == pytest.approx(expected, rel=1e-12)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 10**6)), min_size=1),
)
def test_the_ranking_is_that_of_a_stable_sort(num_classes, rows):
    labels = np.array([label % num_classes for label, _ in rows])
    # Three values alone, so that ties are common.
    drawn = [
        np.random.default_rng(seed).integers(0, 3, num_classes) for _, seed in rows
    ]
    scores = np.array(drawn, np.float32)
    ranking = metrics.rank(labels, scores.__getitem__, num_classes)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.testing.assert_array_equal(ranking.top, order[:, : metrics.TOP])
    np.testing.assert_array_equal(
        ranking.ranks, np.nonzero(order == labels[:, None])[1]
    )
    rows = np.arange(len(labels))
    np.testing.assert_array_equal(ranking.scores, scores[rows, labels])
    np.testing.assert_array_equal(
        ranking.top_scores, scores[rows[:, None], ranking.top]
    )


def test_parts_of_any_size_give_the_same_ranking(outcome, monkeypatch):
    labels, scores = outcome
    whole = metrics.rank(labels, scores.__getitem__, 12)
    for limit in (1, 100, 12 * 500):
        monkeypatch.setattr(metrics, "MAX_SCORES", limit)
        parts = metrics.rank(labels, scores.__getitem__, 12)
        for name in ("top", "top_scores", "ranks", "scores"):
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_a_permutation_of_the_classes_changes_nothing(outcome):
    labels, scores = outcome
    order = np.random.default_rng(1).permutation(12)
    permuted = metrics.classification_metrics(
        np.argsort(order)[labels], scores[:, order]
    )
    whole = metrics.classification_metrics(labels, scores)
    assert permuted == pytest.approx(whole, rel=1e-12)  # recalls are added in turn


def test_of_equal_scores_the_first_class_wins():
    scores = np.zeros((2, 7))
    ours = metrics.classification_metrics([0, 6], scores)
    assert (ours["top1"], ours["top5"]) == (0.5, 0.5)


def test_three_classes_have_a_top5_of_one():
    scores = np.random.default_rng(2).normal(size=(9, 3))
    assert metrics.classification_metrics([0, 1, 2] * 3, scores)["top5"] == 1


def test_one_class_is_always_right():
    ours = metrics.classification_metrics([0, 0], np.zeros((2, 1)))
    assert (ours["top1"], ours["top5"], ours["mean_per_class_recall"]) == (1, 1, 1)


def test_a_class_without_an_example_does_not_count():
    scores = np.eye(3)[[0, 0, 1]]
    ours = metrics.classification_metrics([0, 0, 1], scores)
    assert ours["mean_per_class_recall"] == 1


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([], np.zeros((0, 3)), "no example"),
        ([0, 3], np.zeros((2, 3)), "labels from 0 to 3 for 3 classes"),
        ([-1, 0], np.zeros((2, 3)), "labels from -1 to 0 for 3 classes"),
        ([0], np.full((1, 3), np.nan), "not finite"),
    ],
)
def test_what_has_no_metric_is_refused(labels, scores, message):
    with pytest.raises(ValueError, match=message):
        metrics.classification_metrics(labels, scores)
