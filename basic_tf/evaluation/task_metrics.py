"""The metric that a task is reported by, with its 95 % confidence interval.

| metric | is | interval |
|---|---|---|
| `top1` | share of examples whose best class is right | Wilson |
| `mean_per_class_recall` | that share for each class, averaged | bootstrap |
| `area_under_roc` | of two classes, by the difference of their scores | bootstrap |
| `eleven_point_map` | VOC2007's mean average precision, of several labels | bootstrap |
| `recall_at_1` | of retrieval | |
"""

import numpy as np

from basic_tf.evaluation import intervals, metrics, ranked_metrics

SINGLE_LABEL = ("top1", "mean_per_class_recall", "area_under_roc")
MULTI_LABEL = "eleven_point_map"
RETRIEVAL = "recall_at_1"
METRICS = (*SINGLE_LABEL, MULTI_LABEL, RETRIEVAL)


def single_label(metric, labels, ranking):
    """Metrics of a task whose examples have one class each.

    Args:
        metric: one of `SINGLE_LABEL`.
        labels: `[N]` int.
        ranking: `metrics.Ranking`.

    Returns:
        Those of `metrics.ranking_metrics`, `"intervals"` of `top1` and `top5`, and
        `"metric"`, `"value"` and `"interval"`, the main metric.

    Raises:
        ValueError: for an area under ROC of other than two classes, or of one class
            without an example.
    """
    found = metrics.ranking_metrics(labels, ranking)
    count = len(labels)
    found["intervals"] = {
        name: list(intervals.wilson(found[name], count)) for name in ("top1", "top5")
    }
    if metric == "top1":
        return found | _main(metric, found["top1"], found["intervals"]["top1"])
    if metric == "mean_per_class_recall":
        is_right = ranking.ranks == 0
        interval = intervals.bootstrap(
            lambda w: metrics.mean_per_class_recall(labels, is_right, w), count
        )
        return found | _main(metric, found[metric], interval)
    if ranking.num_classes != 2:
        raise ValueError(
            f"{metric} is of two classes and the task has {ranking.num_classes}"
        )
    area = ranked_metrics.AreaUnderRoc(labels == 1, _difference(ranking))
    found[metric] = float(area(np.ones(count, int)))
    return found | _main(metric, found[metric], intervals.bootstrap(area, count))


def multi_label(targets, scores):
    """VOC2007's metric of a task whose examples have any number of classes.

    Args:
        targets: `[N, C]` int: 1 where a class occurs, 0 where not, -1 where it does not
            count.
        scores: `[N, C]` float.

    Returns:
        `{"eleven_point_map", "per_class", "num_examples", "num_classes", "metric",
        "value", "interval"}`; `per_class` has None for a class that does not occur.

    Raises:
        ValueError: for an empty split, one without any class, or a score that is not
            finite.
    """
    if not len(targets):
        raise ValueError("no example to evaluate")
    metrics.check_finite(scores)
    statistic = ranked_metrics.MeanAveragePrecision(targets, scores)
    count = len(targets)
    once = np.ones(count, int)
    value = float(statistic(once))
    return {
        MULTI_LABEL: value,
        "per_class": [of and float(of(once)) for of in statistic.per_class],
        "num_examples": count,
        "num_classes": targets.shape[1],
    } | _main(MULTI_LABEL, value, intervals.bootstrap(statistic, count))


def _difference(ranking):
    """Score of the second class less that of the first, of two, `[N]`."""
    sign = np.where(ranking.predictions == 1, 1.0, -1.0)
    return sign * (ranking.top_scores[:, 0] - ranking.top_scores[:, 1])


def _main(metric, value, interval):
    return {"metric": metric, "value": value, "interval": list(interval)}
