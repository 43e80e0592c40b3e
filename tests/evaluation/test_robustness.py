"""Against points on known curves, and the means that BASIC's figures have."""

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.evaluation import robustness

SETS = ("a", "b")


def model(reference=0.8, a=0.5, b=0.6, name="ours", kind="zero_shot"):
    return robustness.Model(name, kind, {"ref": reference, "a": a, "b": b})


def on_line(slope, intercept, reference):
    logits = slope * scipy.special.logit(reference) + intercept
    return np.stack([reference, scipy.special.expit(logits)], axis=1)


def test_of_the_papers_two_means_84_3_is_the_one_with_imagenet():
    large, medium = robustness.published_models()
    found = robustness.means(large)
    assert round(100 * found["shifted_mean"], 2) == 84.06
    assert round(100 * found["mean_with_reference"], 2) == 84.33
    assert found["reference"] == "imagenet"
    assert found["shifted"] == list(robustness.SHIFTED)
    # (66.7 + 90.6 + 74.1 + 67.4 + 73.5) / 5
    assert round(100 * robustness.means(medium)["shifted_mean"], 2) == 74.46


def test_both_means_are_printed_with_their_sets():
    assert robustness.describe_means(model(), "ref", SETS) == (
        "ours: 55.00 % over 2 shifted sets (a, b), 63.33 % over 3 with ref"
    )


def test_published_points_name_their_sources_and_all_sets():
    models = robustness.published_models()
    assert [each.name for each in models] == ["BASIC-L", "BASIC-M"]
    for each in models:
        assert "arXiv:2111.10050" in each.source
        assert set(each.accuracies) == {robustness.REFERENCE, *robustness.SHIFTED}


@given(st.floats(0.001, 0.999))
def test_logits_are_those_of_scipy(accuracy):
    expected = scipy.special.logit(accuracy)
    assert robustness.logit(accuracy) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("accuracy", [0.0, 1.0, 1.2, np.nan])
def test_accuracies_without_a_logit_are_refused(accuracy):
    with pytest.raises(ValueError, match="has no place on a logit axis"):
        robustness.logit([0.5, accuracy])


@given(
    st.floats(0.2, 3.0),
    st.floats(-2.0, 2.0),
    st.lists(st.floats(0.05, 0.95), min_size=2, max_size=6, unique=True),
)
def test_points_on_a_line_give_it_back(slope, intercept, reference):
    reference = np.array(reference)
    if np.ptp(reference) < 0.05:
        reference = np.append(reference, 0.99)
    line = robustness.fit(on_line(slope, intercept, reference))
    assert line.slope == pytest.approx(slope, rel=1e-6)
    assert line.intercept == pytest.approx(intercept, rel=1e-6, abs=1e-6)


def test_points_off_the_line_are_fitted_by_least_squares_of_logits():
    pairs = np.random.default_rng(0).uniform(0.2, 0.9, (12, 2))
    expected = scipy.stats.linregress(*scipy.special.logit(pairs).T)
    line = robustness.fit(pairs)
    assert line.slope == pytest.approx(expected.slope)
    assert line.intercept == pytest.approx(expected.intercept)


def test_the_line_is_a_logistic_curve_in_accuracies():
    pairs = on_line(1.3, -0.7, np.linspace(0.1, 0.9, 5))
    np.testing.assert_allclose(
        robustness.Line(1.3, -0.7).predict(pairs[:, 0]), pairs[:, 1], rtol=1e-12
    )


@given(st.floats(0.2, 3.0), st.floats(-2.0, 2.0))
def test_at_the_crossing_both_accuracies_are_equal(slope, intercept):
    if abs(slope - 1) > 0.2:
        line = robustness.Line(slope, intercept)
        crossing = line.crossing()
        if 1e-9 < crossing < 1 - 1e-9:
            assert line.predict(crossing) == pytest.approx(crossing, rel=1e-5)


def test_parallel_lines_do_not_cross():
    assert robustness.Line(1.0, -0.5).crossing() is None


def test_effective_robustness_is_what_lies_above_the_baselines():
    baseline = robustness.Line(1.0, -np.log(3))  # odds a third: 0.6 -> 1/3, 0.5 -> 1/4
    excess = robustness.effective_robustness([[0.6, 0.5], [0.5, 0.25]], baseline)
    np.testing.assert_allclose(excess, [0.5 - 1 / 3, 0], atol=1e-15)


def test_points_are_reference_accuracies_and_shifted_means():
    points = robustness.points([model(), model(0.7, 0.1, 0.3)], "ref", SETS)
    np.testing.assert_allclose(points, [[0.8, 0.55], [0.7, 0.2]])
    assert robustness.points([], "ref", SETS).shape == (0, 2)


@pytest.mark.parametrize("pairs, count", [([[0.5, 0.4]], 1), ([[0.5, 0.4]] * 3, 3)])
def test_one_reference_accuracy_has_no_line(pairs, count):
    with pytest.raises(ValueError, match=f"{count} models of 1 reference accuracies"):
        robustness.fit(pairs)


def test_a_missing_set_is_named():
    with pytest.raises(ValueError, match="ours has no accuracy on c, d; it has ref, a"):
        robustness.means(model(), "ref", ("a", "c", "d"))


def test_a_mean_over_no_shifted_set_is_refused():
    with pytest.raises(ValueError, match="needs one at least"):
        robustness.means(model(), "ref", ())


def test_percentages_and_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match=r"ours has accuracy 85\.7 on ref; give a sh"):
        model(reference=85.7)
    with pytest.raises(ValueError, match="of kind 'magic'; known: baseline, zero_shot"):
        model(kind="magic")
