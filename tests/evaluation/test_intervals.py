import math

import numpy as np
import pytest
from scipy import stats

from basic_tf.evaluation import intervals


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (3, 7), (950, 1000)])
def test_wilsons_interval_is_scipys(right, count):
    expected = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert intervals.wilson(right / count, count) == pytest.approx(
        tuple(expected), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("count", range(1, 300, 7))
def test_the_interval_holds_the_share(count):
    assert intervals.wilson(0.0, count)[0] == 0
    assert intervals.wilson(1.0, count)[1] == 1


def test_the_interval_of_a_mean_is_the_normal_one():
    # 1,000 resamples give a quantile to about a tenth of the standard error.
    values = np.random.default_rng(0).normal(size=2000)
    low, high = intervals.bootstrap(lambda w: np.average(values, weights=w), 2000)
    error = values.std() / math.sqrt(2000)
    assert low == pytest.approx(values.mean() - intervals.Z * error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + intervals.Z * error, abs=0.15 * error)


def test_the_same_seed_gives_the_same_interval():
    values = np.arange(20.0)

    def mean(weights):
        return np.average(values, weights=weights)

    assert intervals.bootstrap(mean, 20) == intervals.bootstrap(mean, 20)
    assert intervals.bootstrap(mean, 20) != intervals.bootstrap(mean, 20, seed=1)


def test_every_resample_has_as_many_examples():
    def count(weights):
        assert len(weights) == 7
        return weights.sum()

    assert intervals.bootstrap(count, 7) == (7, 7)


def test_resamples_without_a_value_are_left_out():
    interval = intervals.bootstrap(lambda w: w[0] or np.nan, 3)
    assert interval[0] == 1
    with pytest.raises(ValueError, match="3 examples are too few"):
        intervals.bootstrap(lambda w: np.nan, 3)


def test_a_paired_difference_is_that_of_mcnemar():
    first, second = (
        np.repeat([1, 1, 0, 0], [50, 12, 5, 33]),
        np.repeat([1, 0, 1, 0], [50, 12, 5, 33]),
    )
    # Newcombe 1998, method 5: sqrt(b + c - (b - c)^2 / n) / n around (b - c) / n.
    spread = 1.959964 * np.sqrt(12 + 5 - 7**2 / 100) / 100
    low, high = intervals.paired_difference(first, second)
    assert (low, high) == pytest.approx((0.07 - spread, 0.07 + spread), rel=1e-5)
    assert intervals.paired_difference(first, first) == (0.0, 0.0)
