"""Metrics of a classifier over a whole split, on scikit-learn."""

import numpy as np
from sklearn import metrics


def rank_classes(scores):
    """Classes of each example, best first.

    Args:
        scores: `[N, C]` float, larger is better.

    Returns:
        `[N, C]` int. Of equal scores the class with the lower index comes first.
    """
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")


def classification_metrics(labels, scores):
    """Top-1, top-5 and mean per-class recall.

    Args:
        labels: `[N]` int, the right class of each example.
        scores: `[N, C]` float, ranked by `rank_classes`.

    Returns:
        `{"top1", "top5", "mean_per_class_recall", "num_examples", "num_classes"}`,
        means in [0, 1]. With at most five classes `top5` is 1. A class without an
        example does not enter the mean per-class recall.

    Raises:
        ValueError: for an empty split.
    """
    labels = np.asarray(labels)
    if not len(labels):
        raise ValueError("no example to evaluate")
    ranked = rank_classes(scores)
    predictions = ranked[:, 0]
    return {
        "top1": float(np.mean(predictions == labels)),
        "top5": float(np.mean(np.any(ranked[:, :5] == labels[:, None], axis=1))),
        "mean_per_class_recall": float(
            metrics.recall_score(
                labels, predictions, labels=np.unique(labels), average="macro"
            )
        ),
        "num_examples": len(labels),
        "num_classes": ranked.shape[1],
    }
