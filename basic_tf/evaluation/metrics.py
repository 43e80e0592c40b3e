"""Metrics of a classifier over a whole split."""

import dataclasses

import numpy as np
import tensorflow as tf

TOP = 5
MAX_SCORES = 2**22  # that are ranked at a time: their temporaries take about 100 MB


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Where the right class of each example stands, and what stands before all others.

    Of equal scores the class with the lower index comes first.

    Attributes:
        top: `[N, min(TOP, C)]` int32, the best classes, best first.
        top_scores: `[N, min(TOP, C)]` float32.
        ranks: `[N]` int32, the number of classes before the right one.
        scores: `[N]` float32, of the right class.
        num_classes: C.
    """

    top: np.ndarray
    top_scores: np.ndarray
    ranks: np.ndarray
    scores: np.ndarray
    num_classes: int

    @property
    def predictions(self):
        """`[N]` int32, the best class of each example."""
        return self.top[:, 0]


def rank(labels, score_rows, num_classes):
    """Ranks the classes of each example, some examples at a time.

    Args:
        labels: `[N]` int, the right class of each example.
        score_rows: function from a slice of the examples to their scores, float
            `[n, C]`, larger is better.
        num_classes: C.

    Returns:
        `Ranking`.

    Raises:
        ValueError: for an empty split, a label outside the classes, or a score that is
            not finite.
    """
    labels = np.asarray(labels)
    if not len(labels):
        raise ValueError("no example to evaluate")
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"labels from {labels.min()} to {labels.max()} for {num_classes} classes"
        )
    size = max(1, MAX_SCORES // num_classes)
    slices = [slice(start, start + size) for start in range(0, len(labels), size)]
    parts = [_rank(labels[rows], score_rows(rows)) for rows in slices]
    return Ranking(*map(np.concatenate, zip(*parts, strict=True)), num_classes)


def _rank(labels, scores):
    scores = np.asarray(scores, np.float32)
    check_finite(scores)
    top_scores, top = tf.math.top_k(scores, min(TOP, scores.shape[1]))
    right = np.take_along_axis(scores, labels[:, None], axis=1)
    is_lower = np.arange(scores.shape[1]) < labels[:, None]
    is_before = (scores > right) | ((scores == right) & is_lower)
    ranks = is_before.sum(axis=1, dtype=np.int32)
    return top.numpy(), top_scores.numpy(), ranks, right[:, 0]


def check_finite(scores):
    """Refuses scores of which one is not finite: it would rank as if it were right.

    Raises:
        ValueError: for such scores.
    """
    if not np.isfinite(scores).all():
        raise ValueError("a score is not finite: the embeddings are no numbers")


def classification_metrics(labels, scores):
    """Top-1, top-5 and mean per-class recall of a matrix of scores.

    Args:
        labels: `[N]` int, the right class of each example.
        scores: `[N, C]` float, larger is better.

    Returns:
        As `ranking_metrics`.

    Raises:
        ValueError: as `rank`.
    """
    scores = np.asarray(scores)
    ranking = rank(labels, scores.__getitem__, scores.shape[1])
    return ranking_metrics(labels, ranking)


def ranking_metrics(labels, ranking):
    """Top-1, top-5 and mean per-class recall.

    Args:
        labels: `[N]` int.
        ranking: `Ranking`.

    Returns:
        `{"top1", "top5", "mean_per_class_recall", "num_examples", "num_classes"}`,
        means in [0, 1]. With at most five classes `top5` is 1.
    """
    is_right = ranking.ranks == 0
    return {
        "top1": float(np.mean(is_right)),
        "top5": float(np.mean(ranking.ranks < TOP)),
        "mean_per_class_recall": mean_per_class_recall(labels, is_right),
        "num_examples": len(labels),
        "num_classes": ranking.num_classes,
    }


def mean_per_class_recall(labels, is_right, weights=None):
    """Mean over the classes of the share of their examples that are right.

    Args:
        labels: `[N]` int.
        is_right: `[N]` bool.
        weights: `[N]`, how often each example counts; None for once each.

    Returns:
        A number in [0, 1]. A class without an example does not enter it.
    """
    weights = np.ones(len(labels)) if weights is None else weights
    totals = np.bincount(labels, weights)
    hits = np.bincount(labels, weights * is_right)
    present = totals > 0
    return float(np.mean(hits[present] / totals[present]))
