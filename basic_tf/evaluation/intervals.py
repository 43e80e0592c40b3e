"""95 % confidence intervals."""

import numpy as np

Z = 1.959963984540054  # the normal distribution's quantile of 0.975
NUM_RESAMPLES = 1000
SEED = 0


def wilson(share, count):
    """Wilson's score interval of a share of independent examples (Wilson 1927).

    Args:
        share: of `count` examples, in [0, 1].
        count: at least 1.

    Returns:
        `(low, high)`, within [0, 1].
    """
    center = share + Z**2 / (2 * count)
    spread = Z * np.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    scale = 1 + Z**2 / count
    low, high = (center - spread) / scale, (center + spread) / scale
    # Where all are right or wrong the share is an end, which rounding may pass.
    return float(np.clip(low, 0.0, share)), float(np.clip(high, share, 1.0))


def paired_difference(first, second):
    """Interval of the mean difference of two outcomes on the same examples.

    Args:
        first: `[N]` bool or float, of each example; N at least 1.
        second: the same, of another model.

    Returns:
        `(low, high)`, the normal approximation.
    """
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    spread = Z * differences.std() / np.sqrt(len(differences))
    return float(differences.mean() - spread), float(differences.mean() + spread)


def bootstrap(statistic, count, num_resamples=NUM_RESAMPLES, seed=SEED):
    """Percentile interval of a statistic over examples drawn with replacement.

    Args:
        statistic: function from how often each example counts, int `[count]`, to a
            number; a resample where it is NaN is left out.
        count: number of examples.
        num_resamples: how often they are drawn.
        seed: int; the same seed gives the same interval.

    Returns:
        `(low, high)`, the quantiles of 0.025 and 0.975.

    Raises:
        ValueError: if the statistic is NaN for every resample.
    """
    generator = np.random.default_rng(seed)
    values = np.empty(num_resamples)
    for row in range(num_resamples):
        drawn = generator.integers(count, size=count)
        values[row] = statistic(np.bincount(drawn, minlength=count))
    values = values[~np.isnan(values)]
    if not len(values):
        raise ValueError(f"no interval: {count} examples are too few to be resampled")
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
