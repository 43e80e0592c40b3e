"""What an evaluation owes to training images that look like its own (CLIP section 5).

CLIP's test: is the accuracy on the images with a near-duplicate in training higher than
that on the clean ones? If so, the accuracy on all is too good by `all - clean`.
"""

import numpy as np
import scipy.special  # scikit-learn brings it

from basic_tf.data import contamination

CONFIDENCE = 0.995  # CLIP's


def overlapping(images, training, threshold=contamination.THRESHOLD):
    """Which evaluation images look like a training image.

    The search of `contamination`, the other way about: it names one match of an image
    that it is asked for, and here every evaluation image is asked for.

    Args:
        images: `[N, S, S]` gray in [0, 1], the evaluation images.
        training: iterable of `[B, S, S]`, the training images.
        threshold: structural similarity from which on two images match.

    Returns:
        `[N]` bool.

    Raises:
        ValueError: as `contamination.EvaluationImages` and its `find`.
    """
    found = np.zeros(len(images), bool)
    for batch in training:
        rest = np.flatnonzero(~found)
        held = contamination.EvaluationImages(batch, threshold)
        matches = held.find(images[rest])
        found[rest[[match.image for match in matches]]] = True
    return found


def report(is_overlap, is_right, confidence=CONFIDENCE):
    """Accuracy on overlapping and clean images, and whether the difference is chance.

    Args:
        is_overlap: `[N]` bool, whether each image has a near-duplicate in training.
        is_right: `[N]` bool, whether it was classified right.
        confidence: of the interval, in (0, 1).

    Returns:
        `{"num_examples", "num_overlap", "overlap_share", "accuracy",
        "overlap_accuracy", "overlap_interval", "clean_accuracy", "inflation",
        "p_value", "confidence"}`. The interval is Clopper and Pearson's;
        `inflation` is the accuracy on all over that on the clean ones; `p_value` the
        probability of as many right ones of the overlap, or more, at the accuracy of
        the clean ones. What has no example to be of is None.

    Raises:
        ValueError: for no example, or lists of different lengths.
    """
    is_overlap, is_right = np.asarray(is_overlap, bool), np.asarray(is_right, bool)
    if is_overlap.ndim != 1 or is_overlap.shape != is_right.shape or not len(is_right):
        raise ValueError(
            f"{is_overlap.shape} entries of overlap and {is_right.shape} of what is "
            "right must be one each for every example"
        )
    count, right = int(is_overlap.sum()), int(is_right[is_overlap].sum())
    accuracy = float(is_right.mean())
    clean = float(is_right[~is_overlap].mean()) if count < len(is_right) else None
    return {
        "num_examples": len(is_right),
        "num_overlap": count,
        "overlap_share": count / len(is_right),
        "accuracy": accuracy,
        "overlap_accuracy": right / count if count else None,
        "overlap_interval": clopper_pearson(right, count, confidence)
        if count
        else None,
        "clean_accuracy": clean,
        "inflation": None if clean is None else accuracy - clean,
        "p_value": None if clean is None or not count else p_value(right, count, clean),
        "confidence": confidence,
    }


def clopper_pearson(right, count, confidence=CONFIDENCE):
    """The exact interval of a share, from quantiles of beta distributions.

    Args:
        right: successes, in [0, `count`].
        count: trials, at least 1.
        confidence: in (0, 1).

    Returns:
        `(low, high)`, which hold the true share with at least that probability.

    Raises:
        ValueError: for numbers out of range.
    """
    if not 0 <= right <= count or count < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"{right} right of {count} at confidence {confidence}: right must be in "
            "[0, count], count 1 or more, and confidence in (0, 1)"
        )
    tail = (1 - confidence) / 2
    inverse = scipy.special.betaincinv
    low = inverse(right, count - right + 1, tail) if right else 0.0
    high = inverse(right + 1, count - right, 1 - tail) if right < count else 1.0
    return float(low), float(high)


def p_value(right, count, share):
    """Probability of `right` or more successes of `count` at the success rate `share`.

    The one-sided binomial test.
    """
    # The tail of a binomial is an incomplete beta function.
    tail = scipy.special.betainc(right, count - right + 1, share) if right else 1.0
    return float(tail)
