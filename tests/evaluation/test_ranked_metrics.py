"""Against scikit-learn's curves and, for VOC's definition, a naive loop."""

import fractions

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from basic_tf.evaluation import ranked_metrics

ROWS = st.lists(
    st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 6), st.integers(0, 3)),
    min_size=1,
    max_size=30,
)


def naive_average_precision(targets, scores, weights):
    """VOC2007's, in fractions: of each recall the best precision from there on."""
    total = sum(w for t, w in zip(targets, weights, strict=True) if t == 1)
    points = []
    for threshold in set(scores):
        chosen = [
            (t, w)
            for t, s, w in zip(targets, scores, weights, strict=True)
            if s >= threshold and t >= 0
        ]
        found = sum(w for t, w in chosen if t == 1)
        taken = sum(w for _, w in chosen)
        if taken:
            points.append(
                (fractions.Fraction(found, total), fractions.Fraction(found, taken))
            )
    best = [
        max(precision for recall, precision in points if 10 * recall >= tenth)
        for tenth in range(11)
    ]
    return float(sum(best) / 11)


@given(ROWS)
def test_average_precision_is_the_naive_loops(rows):
    targets, scores, weights = map(np.array, zip(*rows, strict=True))
    ours = ranked_metrics.AveragePrecision(targets, scores)(weights)
    if not np.sum(weights[targets == 1]):
        assert np.isnan(ours)
        return
    expected = naive_average_precision(
        *(v.tolist() for v in (targets, scores, weights))
    )
    assert ours == pytest.approx(expected, rel=1e-12)


def test_average_precision_is_that_of_scikit_learns_curve():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 1000)
    scores = rng.normal(size=1000) + targets
    precision, recall, _ = sklearn_metrics.precision_recall_curve(targets, scores)
    precision, recall = precision[:-1], recall[:-1]  # the last point is of no threshold
    expected = np.mean(
        [precision[recall >= t - 1e-9].max() for t in np.arange(11) / 10]
    )
    ours = ranked_metrics.AveragePrecision(targets, scores)(np.ones(1000, int))
    assert ours == pytest.approx(expected, rel=1e-12)


def test_the_example_of_a_known_ranking():
    # Right, wrong, right: precision 1 up to recall 0.5, 2/3 beyond.
    metric = ranked_metrics.AveragePrecision(
        np.array([1, 0, 1]), np.array([0.9, 0.5, 0.1])
    )
    assert metric(np.ones(3, int)) == pytest.approx((6 * 1 + 5 * 2 / 3) / 11)


def test_difficult_examples_and_the_order_of_examples_change_nothing():
    rng = np.random.default_rng(1)
    targets, scores = rng.integers(0, 2, 50), rng.integers(0, 9, 50)
    once = ranked_metrics.AveragePrecision(targets, scores)(np.ones(50, int))
    order = rng.permutation(60)
    more = np.concatenate([targets, np.full(10, -1)])[order]
    more_scores = np.concatenate([scores, rng.integers(0, 9, 10)])[order]
    again = ranked_metrics.AveragePrecision(more, more_scores)(np.ones(60, int))
    assert again == pytest.approx(once, rel=1e-12)


def test_a_class_that_does_not_occur_is_left_out_of_the_mean():
    targets = np.array([[1, 0, -1], [0, 0, 0], [1, 0, 0]])
    scores = np.random.default_rng(2).normal(size=(3, 3))
    ones = np.ones(3, int)
    mean = ranked_metrics.MeanAveragePrecision(targets, scores)
    assert mean.per_class[1:] == [None, None]
    assert mean(ones) == mean.per_class[0](ones)
    with pytest.raises(ValueError, match="no class occurs in any example"):
        ranked_metrics.MeanAveragePrecision(targets[:, 1:], scores[:, 1:])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(1, 3))))
def test_the_area_under_roc_is_scikit_learns(rows):
    if len({is_positive for is_positive, _, _ in rows}) < 2:
        rows = [*rows, (True, 3, 1), (False, 2, 1)]
    is_positive, scores, weights = map(np.array, zip(*rows, strict=True))
    ours = ranked_metrics.AreaUnderRoc(is_positive, scores)(weights)
    expected = sklearn_metrics.roc_auc_score(is_positive, scores, sample_weight=weights)
    assert ours == pytest.approx(expected, rel=1e-12)


def test_the_area_under_roc_needs_both_classes():
    for is_positive in (np.ones(3, bool), np.zeros(3, bool), np.zeros(0, bool)):
        with pytest.raises(ValueError, match="needs examples of both classes"):
            ranked_metrics.AreaUnderRoc(is_positive, np.zeros(len(is_positive)))
    area = ranked_metrics.AreaUnderRoc(np.array([True, False]), np.array([1.0, 0.0]))
    assert np.isnan(area(np.array([2, 0])))
