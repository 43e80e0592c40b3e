"""Curves read back by the ticks of their axes."""

import base64
import re
import xml.etree.ElementTree as etree

import numpy as np
import pytest

from basic_tf.evaluation import report_plots

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [
    {"total_step": 5, "loss": 4.5, "accuracy": 0.125, "temperature": 0.07},
    {"total_step": 20, "loss": 1.25, "accuracy": 0.5, "temperature": 0.06},
    {"total_step": 50, "loss": 2.0, "accuracy": 0.875, "temperature": 0.01},
]


def content(uri, media_type):
    head, _, data = uri.partition(",")
    assert head == f"data:{media_type};base64"
    return base64.b64decode(data)


class Plot:
    """An SVG of Matplotlib, whose comments are its texts."""

    def __init__(self, uri, color):
        parser = etree.XMLParser(target=etree.TreeBuilder(insert_comments=True))
        root = etree.fromstring(content(uri, "image/svg+xml"), parser)
        self.texts = [node.text.strip() for node in root.iter(etree.Comment)]
        self.groups = list(root.iter(f"{SVG}g"))
        (self.line,) = (group for group in self.groups if is_line(group, color))

    def ticks(self, axis):
        """Labels of the ticks and where they are, `[n]` each."""
        labels, places = [], []
        for group in self.groups:
            if group.get("id", "").startswith(f"{axis}tick_"):
                (label,) = (n.text.strip() for n in group.iter(etree.Comment))
                labels.append(float(label.replace("\N{MINUS SIGN}", "-")))
                places.append(float(next(group.iter(f"{SVG}use")).get(axis)))
        return np.array(labels), np.array(places)

    def values(self):
        """The points of the curve in the units of the ticks, `[n, 2]`."""
        path = self.line.find(f"{SVG}path").get("d")
        points = np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path), float)
        columns = []
        for axis, places in zip("xy", points.T, strict=True):
            slope, start = np.polyfit(*self.ticks(axis)[::-1], 1)
            columns.append(slope * places + start)
        return np.stack(columns, 1)


def is_line(group, color):
    path = group.find(f"{SVG}path[@clip-path]")
    return path is not None and f"stroke: {color}" in path.get("style")


@pytest.mark.parametrize(
    ("metric", "factor", "label"),
    [
        ("loss", 1, "loss (nats)"),
        ("accuracy", 100, "accuracy in the batch (%)"),
        ("temperature", 1, "temperature τ"),
    ],
)
def test_a_curve_passes_through_the_values_in_the_units_of_its_axis(
    metric, factor, label
):
    plot = Plot(report_plots.curve_uri(ROWS, metric, "#d55e00"), "#d55e00")
    expected = [(row["total_step"], factor * row[metric]) for row in ROWS]
    # Coordinates have six decimals.
    np.testing.assert_allclose(plot.values(), expected, rtol=1e-4)
    assert label in plot.texts and "step of the run" in plot.texts


def test_steps_are_whole_numbers_even_where_there_are_few():
    rows = [ROWS[0], ROWS[1] | {"total_step": 6}]
    plot = Plot(report_plots.curve_uri(rows, "loss", "#0072b2"), "#0072b2")
    labels, _ = plot.ticks("x")
    assert {5, 6} <= set(labels) and all(label == int(label) for label in labels)


def test_a_run_of_one_row_shows_its_point():
    plot = Plot(report_plots.curve_uri(ROWS[:1], "loss", "#0072b2"), "#0072b2")
    (point,) = plot.line.iter(f"{SVG}use")
    for axis, value in (("x", 5), ("y", 4.5)):
        labels, places = plot.ticks(axis)
        place = np.interp(value, labels, places)
        np.testing.assert_allclose(float(point.get(axis)), place, atol=1e-3)
