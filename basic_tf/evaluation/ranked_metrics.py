"""Metrics of a score by how it orders examples: average precision, area under ROC.

Each is a function of how often every example counts, as a bootstrap needs them: what
depends on the scores alone is done once. Examples of equal scores enter together, so
that no metric depends on their order.
"""

import numpy as np

RECALLS = np.arange(11)  # in tenths: whole numbers compare exactly


class AveragePrecision:
    """VOC2007's 11-point interpolated average precision, of one class.

    The mean over recalls of 0, 0.1, ..., 1 of the best precision at that recall or a
    higher one (Everingham et al. 2010, section 4.2).

    Args:
        targets: `[N]` int: 1 where the class occurs, 0 where not, -1 for an example
            that is left out.
        scores: `[N]` float.
    """

    def __init__(self, targets, scores):
        order = np.argsort(-scores, kind="stable")
        self._order = order = order[targets[order] >= 0]
        self._is_positive = targets[order] > 0
        self._ends = _ends_of_ties(scores[order])

    def __call__(self, weights):
        """The average precision; NaN if no example with the class counts."""
        weights = weights[self._order]
        found = np.cumsum(weights * self._is_positive)[self._ends]
        if not len(found) or not found[-1]:
            return np.nan
        taken = np.cumsum(weights)[self._ends]
        precision = found / np.maximum(taken, 1)
        best = np.maximum.accumulate(precision[::-1])[::-1]
        first = np.searchsorted(10 * found, found[-1] * RECALLS)
        return best[first].mean()


class MeanAveragePrecision:
    """Mean of `AveragePrecision` over the classes that occur.

    Args:
        targets: `[N, C]` int, as of `AveragePrecision`.
        scores: `[N, C]` float.

    Raises:
        ValueError: if no class occurs at all.
    """

    def __init__(self, targets, scores):
        self.per_class = [
            AveragePrecision(*columns) if (columns[0] > 0).any() else None
            for columns in zip(targets.T, scores.T, strict=True)
        ]
        if not any(self.per_class):
            raise ValueError("no class occurs in any example: no average precision")

    def __call__(self, weights):
        values = [metric(weights) for metric in self.per_class if metric]
        present = [value for value in values if not np.isnan(value)]
        return np.mean(present) if present else np.nan


class AreaUnderRoc:
    """Chance that a positive example scores higher than a negative one; ties half.

    Args:
        is_positive: `[N]` bool.
        scores: `[N]` float.

    Raises:
        ValueError: unless there are examples of both kinds.
    """

    def __init__(self, is_positive, scores):
        is_positive = np.asarray(is_positive, bool)
        if is_positive.all() or not is_positive.any():
            raise ValueError(
                "the area under the ROC curve needs examples of both classes"
            )
        self._order = np.argsort(scores, kind="stable")
        self._is_positive = is_positive[self._order]
        self._ends = _ends_of_ties(np.asarray(scores)[self._order])

    def __call__(self, weights):
        """The area; NaN if examples of one kind alone count."""
        weights = weights[self._order]
        positives = np.cumsum(weights * self._is_positive)[self._ends]
        negatives = np.cumsum(weights * ~self._is_positive)[self._ends]
        pairs = positives[-1] * negatives[-1]
        if not pairs:
            return np.nan
        # Positives of a tie meet all negatives below it and half of those within.
        below = np.concatenate([[0], negatives[:-1]])
        return np.sum(np.diff(positives, prepend=0) * (below + negatives)) / (2 * pairs)


def _ends_of_ties(ordered):
    """Index of the last of each run of equal scores."""
    if not len(ordered):
        return np.zeros(0, int)
    return np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
