import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from basic_tf.evaluation import intervals, metrics, task_metrics


def make_ranking(count, num_classes, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, count)
    scores = rng.normal(size=(count, num_classes)).astype(np.float32)
    scores += np.eye(num_classes, dtype=np.float32)[labels]
    return labels, scores, metrics.rank(labels, scores.__getitem__, num_classes)


def test_top1_is_the_main_metric_with_wilsons_interval():
    labels, _, ranking = make_ranking(200, 7)
    found = task_metrics.single_label("top1", labels, ranking)
    assert (found["metric"], found["value"]) == ("top1", found["top1"])
    for name in ("top1", "top5"):
        expected = intervals.wilson(found[name], 200)
        assert found["intervals"][name] == list(expected)
    assert found["interval"] == found["intervals"]["top1"]


def test_mean_per_class_recall_has_a_bootstrap_interval_around_it():
    labels, scores, ranking = make_ranking(300, 4)
    found = task_metrics.single_label("mean_per_class_recall", labels, ranking)
    expected = sklearn_metrics.balanced_accuracy_score(labels, scores.argmax(axis=1))
    assert found["value"] == pytest.approx(expected, rel=1e-12)
    low, high = found["interval"]
    assert 0.08 < high - low < 0.14  # 4 standard errors of a share of 300 near 0.7
    assert low < found["value"] < high


def test_the_area_under_roc_is_of_the_difference_of_the_two_scores():
    labels, scores, ranking = make_ranking(150, 2)
    found = task_metrics.single_label("area_under_roc", labels, ranking)
    expected = sklearn_metrics.roc_auc_score(labels, scores[:, 1] - scores[:, 0])
    assert found["value"] == pytest.approx(expected, rel=1e-12)
    assert found["interval"][0] < expected < found["interval"][1]


def test_the_area_under_roc_of_three_classes_is_refused():
    labels, _, ranking = make_ranking(9, 3)
    with pytest.raises(ValueError, match="of two classes and the task has 3"):
        task_metrics.single_label("area_under_roc", labels, ranking)


def test_several_labels_have_a_mean_over_the_classes_that_occur():
    rng = np.random.default_rng(0)
    targets = rng.integers(-1, 2, (80, 5))
    targets[:, 3] = np.minimum(targets[:, 3], 0)
    found = task_metrics.multi_label(targets, rng.normal(size=(80, 5)))
    assert found["per_class"][3] is None
    present = [value for value in found["per_class"] if value is not None]
    assert found["value"] == pytest.approx(np.mean(present), rel=1e-12)
    assert found["interval"][0] < found["value"] < found["interval"][1]
    assert (found["num_examples"], found["num_classes"]) == (80, 5)


def test_several_labels_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no example"):
        task_metrics.multi_label(np.zeros((0, 3)), np.zeros((0, 3)))
    with pytest.raises(ValueError, match="not finite"):
        task_metrics.multi_label(np.ones((1, 3)), np.full((1, 3), np.inf))
