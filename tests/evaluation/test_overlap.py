"""Against scipy's binomial test, and naive counts."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.data import ssim
from basic_tf.evaluation import overlap


@st.composite
def outcomes(draw):
    count = draw(st.integers(1, 300))
    return draw(st.integers(0, count)), count


@given(outcomes(), st.sampled_from([0.5, 0.95, 0.995]))
def test_the_interval_is_the_exact_one_of_scipy(outcome, confidence):
    expected = scipy.stats.binomtest(*outcome).proportion_ci(confidence, "exact")
    actual = overlap.clopper_pearson(*outcome, confidence)
    assert actual == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)


@given(outcomes(), st.floats(0.0, 1.0))
def test_the_p_value_is_the_one_sided_one_of_scipy(outcome, share):
    expected = scipy.stats.binomtest(*outcome, share, alternative="greater").pvalue
    assert overlap.p_value(*outcome, share) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_the_report_counts_what_there_is(pairs):
    report = overlap.report(*zip(*pairs, strict=True))
    dirty = [right for looks_alike, right in pairs if looks_alike]
    clean = [right for looks_alike, right in pairs if not looks_alike]
    assert (report["num_examples"], report["num_overlap"]) == (len(pairs), len(dirty))
    assert report["overlap_share"] == pytest.approx(len(dirty) / len(pairs))
    mean = np.mean([right for _, right in pairs])
    assert report["accuracy"] == pytest.approx(mean)
    for name, values in (("overlap_accuracy", dirty), ("clean_accuracy", clean)):
        expected = pytest.approx(np.mean(values)) if values else None
        assert report[name] == expected
    assert report["inflation"] == (
        pytest.approx(mean - np.mean(clean)) if clean else None
    )
    if dirty and clean:
        test = scipy.stats.binomtest(
            sum(dirty), len(dirty), np.mean(clean), alternative="greater"
        )
        assert report["p_value"] == pytest.approx(test.pvalue, abs=1e-12)
    else:
        assert report["p_value"] is None
    assert (report["overlap_interval"] is None) == (not dirty)


def test_the_interval_of_the_report_is_that_of_the_overlap_at_99_5_percent():
    report = overlap.report([1] * 20 + [0] * 80, [1] * 15 + [0] * 5 + [1, 0] * 40)
    interval = scipy.stats.binomtest(15, 20).proportion_ci(0.995, "exact")
    assert report["overlap_interval"] == pytest.approx((interval.low, interval.high))
    assert report["confidence"] == 0.995
    assert report["inflation"] == pytest.approx(0.55 - 0.5)


def test_what_was_seen_and_is_always_right_is_hardly_chance():
    report = overlap.report([1] * 10 + [0] * 10, [1] * 10 + [1, 0] * 5)
    assert report["p_value"] == pytest.approx(2.0**-10)


def test_evaluation_images_that_training_has_are_marked_each():
    rng = np.random.default_rng(0)
    shape = ssim.IMAGE_SIZE, ssim.IMAGE_SIZE
    images = rng.random((6, *shape))
    images[5] = images[4]  # both look like one training image
    training = [rng.random((3, *shape)), rng.random((4, *shape))]
    training[0][1] = np.clip(images[2] + 0.01, 0, 1)
    training[1][3] = images[4]
    found = overlap.overlapping(images, training)
    assert found.tolist() == [False, False, True, False, True, True]
    naive = [
        any(
            ssim.structural_similarity(image[None], other[None])[0] >= 0.5
            for batch in training
            for other in batch
        )
        for image in images
    ]
    assert found.tolist() == naive


def test_without_training_images_nothing_overlaps():
    assert overlap.overlapping(np.zeros((3, 32, 32)), []).tolist() == [False] * 3


@pytest.mark.parametrize("is_overlap, is_right", [([], []), ([1, 0], [1]), (1, 1)])
def test_lists_that_do_not_match_are_refused(is_overlap, is_right):
    with pytest.raises(ValueError, match="must be one each for every example"):
        overlap.report(is_overlap, is_right)


@pytest.mark.parametrize(
    "arguments", [(3, 2, 0.9), (-1, 2, 0.9), (0, 0, 0.9), (1, 2, 1)]
)
def test_an_interval_of_nothing_is_refused(arguments):
    with pytest.raises(ValueError, match=f"^{arguments[0]} right of {arguments[1]} at"):
        overlap.clopper_pearson(*arguments)
