"""Reports of made-up outcomes, read back with the parsers of the standard library."""

import base64
import dataclasses
import html.parser
import io
import json
import pathlib
import re

import pytest
from PIL import Image

from basic_tf.evaluation import report, report_task
from tests.evaluation.made_up_outcomes import (
    make_outcome,
    make_result,
    names,
)

AWKWARD_NAMES = [
    "<script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "a, b; 100 % \\ $x^2$",
    "Größe 漢字 🦉",
    "\"double\" 'single' & co",
    "</style><img src=x>",
]
VOID_TAGS = {"meta", "img", "br"}


@pytest.fixture(scope="module")
def outcome():
    return make_outcome(
        {
            "serif": make_result(names(7), seed=1),
            "icons": make_result(
                names(report_task.MATRIX_CLASSES + 1, "icon"), 300, seed=2
            ),
        }
    )


@pytest.fixture(scope="module")
def compared():
    return make_outcome(
        {"serif": make_result(names(7), noise=1.0, seed=1)}, "runs/scratch"
    )


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of a page, whose tags must be balanced."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in VOID_TAGS:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())

    def values(self, name):
        return [value for _, key, value in self.attributes if key == name]


def test_the_numbers_are_those_of_the_outcome(outcome, tmp_path):
    written = report.write(tmp_path, outcome)
    assert written == json.loads((tmp_path / "report.json").read_text())
    assert written["zero_shot"] == {
        name: result.metrics for name, result in outcome.results.items()
    }
    assert set(written["zero_shot"]["serif"]) == {
        "top1",
        "top5",
        "mean_per_class_recall",
        "num_examples",
        "num_classes",
        "intervals",
        "metric",
        "value",
        "interval",
    }
    assert written["train"] == {
        "seconds": 123.0,
        "examples_per_second": 26.0,
        "input_examples_per_second": 4321.0,
        "cpu_utilization": 0.913,
        "phases": outcome.training["phases"],
    }
    assert written["parameters"] == outcome.training["parameters"]
    assert written["config"] == outcome.run.config.to_dict()
    assert "scratch" not in written


def test_a_compared_run_has_its_numbers_under_its_name(outcome, compared, tmp_path):
    alone = report.write(tmp_path / "alone", compared)
    both = report.write(tmp_path / "both", outcome, [compared])
    scratch = both.pop("scratch")
    assert both.keys() == scratch.keys()
    assert scratch == alone


def test_a_compared_run_cannot_hide_the_numbers_of_the_first(outcome, tmp_path):
    compared = make_outcome({}, "runs/train")
    with pytest.raises(ValueError, match="called 'train'"):
        report.write(tmp_path, outcome, [compared])


def test_peak_memory_is_the_larger_of_training_and_evaluation(outcome, tmp_path):
    assert report.write(tmp_path, outcome)["peak_memory_mb"] == 1_000_000
    small = make_outcome(outcome.results)
    small.training["peak_memory_mb"] = 1
    assert 1 < report.write(tmp_path, small)["peak_memory_mb"] < 1_000_000


def test_the_page_loads_nothing(outcome, compared):
    text = report.render(outcome, [compared])
    page = Page(text)
    assert not re.search(r"https?://|@import|url\(", text)
    assert all(src.startswith("data:image/") for src in page.values("src"))
    anchors = set(page.values("id"))
    assert {href.removeprefix("#") for href in page.values("href")} <= anchors
    assert len(page.values("id")) == len(anchors)


def test_class_names_appear_as_they_are():
    many = AWKWARD_NAMES + names(report_task.MATRIX_CLASSES)
    results = {
        "few": make_result(AWKWARD_NAMES),
        "<b>many</b>": make_result(many, 600, noise=0.05),
    }
    page = Page(report.render(make_outcome(results)))
    assert "script" not in page.tags
    assert all(src.startswith("data:image/") for src in page.values("src"))
    assert {*AWKWARD_NAMES, "<b>many</b>"} <= set(page.texts)
    assert set(AWKWARD_NAMES) <= set(page.values("alt"))


def test_one_class_and_no_wrong_prediction_has_a_report(tmp_path):
    results = {"one": make_result(["only"], 5, noise=0.0)}
    written = report.write(tmp_path, make_outcome(results))
    assert written["zero_shot"]["one"]["top1"] == 1.0
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.texts.count("✓ right:") == 5
    assert "✗ wrong:" not in page.texts


def test_many_classes_and_no_wrong_prediction_says_so():
    results = {"many": make_result(names(report_task.MATRIX_CLASSES + 1), noise=0.0)}
    assert (
        "No image was classified wrongly."
        in Page(report.render(make_outcome(results))).texts
    )


def test_large_images_are_shown_smaller(outcome):
    results = {"large": make_result(names(2), 6, size=100)}
    page = Page(report.render(make_outcome(results, image_size=224)))
    for uri in page.values("src"):
        if uri.startswith("data:image/png"):
            image = Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))
            assert image.size == (report.MAX_IMAGE_SIZE, report.MAX_IMAGE_SIZE)


def test_the_table_shows_both_runs_and_their_difference(outcome, compared):
    texts = Page(report.render(outcome, [compared])).texts
    ours, theirs = (o.results["serif"].metrics["top1"] for o in (outcome, compared))
    assert f"{100 * ours:.1f}%" in texts
    assert f"{100 * theirs:.1f}%" in texts
    difference = f"{100 * (ours - theirs):+.1f}"
    assert difference.replace("-", "\N{MINUS SIGN}") in texts
    assert "\N{EN DASH}" in texts  # the compared run has no task "icons"


def test_another_main_metric_has_a_row_with_its_interval(outcome):
    result = make_result(names(2), 40, metric="area_under_roc")
    voc = dataclasses.replace(
        result,
        metrics={"metric": "eleven_point_map", "value": 0.5, "interval": [0.25, 0.75]},
        ranking=None,
    )
    outcome = make_outcome(outcome.results | {"pcam": result, "voc2007": voc})
    texts = Page(report.render(outcome)).texts
    low, high = (f"{100 * end:.1f}%" for end in result.metrics["interval"])
    assert f"{low} to {high}" in texts
    assert "25.0% to 75.0%" in texts and "eleven point map" in texts


def test_runs_in_folders_of_the_same_name_are_told_apart(outcome):
    other = make_outcome(outcome.results, "elsewhere/demo")
    page = Page(report.render(outcome, [other]))
    assert {"runs/demo", "elsewhere/demo"} <= set(page.texts)


def test_a_temperature_has_a_curve_only_where_it_was_logged(outcome):
    curves = [phase["curves"].keys() for phase in report._run(outcome, "")["phases"]]
    assert curves == [{"loss", "accuracy"}, {"loss", "accuracy", "temperature"}]


def test_a_run_without_rows_has_a_report(outcome):
    results = {"serif": outcome.results["serif"]}
    silent = make_outcome(results)
    silent.rows.clear()
    assert "Phase 1: pretrain" in Page(report.render(silent)).texts


def test_a_run_without_tasks_has_a_report(tmp_path):
    assert report.write(tmp_path, make_outcome({}))["zero_shot"] == {}
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No task was evaluated." in Page(text).texts
    assert "--tasks" not in text


def test_the_same_outcome_gives_the_same_page(outcome):
    small = make_outcome({"serif": outcome.results["serif"]})
    small.training["peak_memory_mb"] = 10**9
    assert report.render(small) == report.render(small)


def test_the_commands_lead_to_the_page(outcome, compared):
    commands = report._commands([outcome, compared], "out put")
    train = "python -m experiments.train --config experiments/configs/repeat.py"
    assert [command for _, command in commands] == [
        f"{train}:runs/demo --workdir runs/demo-again",
        f"{train}:runs/scratch --workdir runs/scratch-again",
        "python -m experiments.evaluate --workdir runs/demo --tasks serif,icons "
        "--compare_workdir runs/scratch --output 'out put'",
    ]


def test_a_write_that_fails_keeps_the_report_that_was_there(
    outcome, tmp_path, monkeypatch
):
    (tmp_path / "report.json").write_text("before")

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(pathlib.Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        report.write(tmp_path, outcome)
    assert (tmp_path / "report.json").read_text() == "before"
