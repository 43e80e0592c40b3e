"""Few labels: as many examples of every class, drawn from a seed."""

import numpy as np


def few_shot(labels, shots, seed):
    """The same number of examples of every class.

    With the same seed, fewer shots are a subset of more.

    Args:
        labels: `[N]` int; the classes are those that occur.
        shots: examples of each class, such as CLIP's 1, 2, 4, 8 and 16.
        seed: int.

    Returns:
        Indices into `labels`, `[classes * shots]` int, ascending.

    Raises:
        ValueError: for a class with fewer examples, naming the one with the fewest.
    """
    labels = np.asarray(labels)
    if shots < 1:
        raise ValueError(f"{shots} shots; use 1 or more")
    classes, counts = np.unique(labels, return_counts=True)
    if not len(classes):
        raise ValueError("no labelled example to choose from")
    if counts.min() < shots:
        short = np.sum(counts < shots)
        raise ValueError(
            f"class {classes[counts.argmin()]} has {counts.min()} of the {shots} "
            f"examples asked of each class ({short} classes have too few); ask for "
            f"{counts.min()} or fewer"
        )
    order = np.random.default_rng(seed).permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    return np.sort(by_class[starts[:, None] + np.arange(shots)].ravel())


def balanced(labels, fraction, seed):
    """A share of the examples, as many of every class (SimCLR section 6: 1 % and 10 %).

    Args:
        labels: see `few_shot`.
        fraction: of all examples, in (0, 1]; rounded to examples of a class.
        seed: int.

    Returns:
        See `few_shot`.

    Raises:
        ValueError: as `few_shot`, and for a share of less than one example a class.
    """
    labels = np.asarray(labels)
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction {fraction} of the examples must be in (0, 1]")
    num_classes = len(np.unique(labels))
    shots = round(fraction * len(labels) / max(num_classes, 1))
    if len(labels) and not shots:
        raise ValueError(
            f"{100 * fraction:g}% of {len(labels)} examples are fewer than the "
            f"{num_classes} classes; use {100 * num_classes / len(labels):.2g}% or more"
        )
    return few_shot(labels, max(shots, 1), seed)
