"""Which classes a classifier takes for which."""

import numpy as np
from sklearn import metrics


def confusion_matrix(labels, predictions, num_classes):
    """Counts of examples by true class (row) and predicted class (column).

    Args:
        labels: `[N]` int, the true classes.
        predictions: `[N]` int.
        num_classes: C.

    Returns:
        `[C, C]` int.
    """
    # Never fewer than two labels: scikit-learn warns of one even where it is meant.
    classes = np.arange(max(num_classes, 2))
    matrix = metrics.confusion_matrix(labels, predictions, labels=classes)
    return matrix[:num_classes, :num_classes]


def most_confused(labels, predictions, num_classes, limit):
    """The most frequent mistakes.

    Args:
        labels, predictions, num_classes: see `confusion_matrix`.
        limit: how many to return at most.

    Returns:
        List of `(true class, predicted class, count, share)`, the most frequent first,
        of equally frequent ones the lower classes first; `share` is `count` over the
        examples of the true class.
    """
    matrix = confusion_matrix(labels, predictions, num_classes)
    totals = matrix.sum(axis=1)
    np.fill_diagonal(matrix, 0)
    true, predicted = np.nonzero(matrix)  # in the order of the classes
    counts = matrix[true, predicted]
    return [
        (int(true[i]), int(predicted[i]), int(counts[i]), counts[i] / totals[true[i]])
        for i in np.argsort(-counts, kind="stable")[:limit]
    ]
