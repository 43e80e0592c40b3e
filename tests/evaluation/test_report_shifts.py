"""Rows of made-up accuracies; the published line is checked by hand."""

import numpy as np
import pytest
import scipy.special

from basic_tf.evaluation import report_shifts, task_files

GLYPHS = {"serif": 0.9, "phosphor": 0.7, "remix": 0.5, "digits": 0.1}


def test_both_means_stand_beside_their_sets():
    (row,) = report_shifts.rows("ours", GLYPHS)
    assert (row["reference"], row["shifted"]) == ("serif", ["phosphor", "remix"])
    assert row["shifted_mean"] == pytest.approx(0.6)
    assert row["mean_with_reference"] == pytest.approx(0.7)
    assert row["drop"] == pytest.approx(0.3)


def test_effective_robustness_is_above_the_line_of_basic():
    x, y = scipy.special.logit([[0.857, 0.814], [0.8406, 0.7446]])
    slope, start = np.polyfit(x, y, 1)
    expected = 0.6 - scipy.special.expit(slope * scipy.special.logit(0.9) + start)
    (row,) = report_shifts.rows("ours", GLYPHS)
    assert row["effective_robustness"] == pytest.approx(expected)


def test_shifted_tasks_that_were_not_evaluated_are_left_out():
    (row,) = report_shifts.rows("ours", {"imagenet": 0.6, "objectnet": 0.4})
    assert row["shifted"] == ["objectnet"]
    assert report_shifts.rows("ours", {"imagenet": 0.6}) == []
    assert report_shifts.rows("ours", {"phosphor": 0.6}) == []


def test_a_perfect_model_has_a_row_and_no_place_in_the_figure():
    rows = report_shifts.rows("ours", GLYPHS | {"serif": 1.0})
    assert rows[0]["effective_robustness"] is None
    assert report_shifts.plot_uri(rows) is None
    uri = report_shifts.plot_uri(report_shifts.rows("ours", GLYPHS))
    assert uri.startswith("data:image/svg+xml")


def test_every_shift_is_of_tasks_that_there_are():
    known = task_files.known_tasks()
    for shift in report_shifts.read():
        assert {shift["reference"], *shift["shifted"]} <= known.keys()
