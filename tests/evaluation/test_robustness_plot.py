"""What the figure shows, read from its axes."""

import base64

import numpy as np
import pytest
import scipy.special

from basic_tf.evaluation import report_plots, robustness, robustness_plot

SETS = {"reference": "ref", "shifted": ("a",)}


def make(name, kind, reference, shifted):
    return robustness.Model(name, kind, {"ref": reference, "a": shifted})


MODELS = [
    make("net 1", "baseline", 0.6, 0.2),
    make("net 2", "baseline", 0.8, 0.5),
    make("clip", "zero_shot", 0.7, 0.6),
]
OWN = make("ours", "zero_shot", 0.5, 0.45)


def lines(figure):
    (axes,) = figure.axes
    return axes, {line.get_label(): line for line in axes.lines}


def test_every_model_stands_at_its_logits_with_its_name():
    axes, by_label = lines(robustness_plot.plot(MODELS, [OWN], **SETS))
    expected = scipy.special.logit([[0.6, 0.2], [0.8, 0.5]])
    np.testing.assert_allclose(by_label["baselines"].get_xydata(), expected)
    np.testing.assert_allclose(
        by_label["ours"].get_xydata(), scipy.special.logit([[0.5, 0.45]])
    )
    assert by_label["ours"].get_marker() == "*"
    assert {text.get_text() for text in axes.texts} == {"net 1", "net 2", "clip"}


def test_a_kind_of_two_models_has_its_line_and_one_of_one_has_none():
    axes, by_label = lines(robustness_plot.plot(MODELS, [OWN], **SETS))
    solid = [line for line in axes.lines if line.get_linestyle() == "-"]
    (line,) = (line for line in solid if line.get_marker() == "None")
    assert line.get_color() == by_label["baselines"].get_color()
    slope, start = np.polyfit(*line.get_data(), 1)
    for x, y in scipy.special.logit([[0.6, 0.2], [0.8, 0.5]]):
        assert slope * x + start == pytest.approx(y)


def test_y_equals_x_and_all_points_are_inside_the_axes():
    axes, by_label = lines(robustness_plot.plot(MODELS, [OWN], **SETS))
    diagonal = by_label["y = x"]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert axes.get_xlim() == axes.get_ylim()
    low, high = axes.get_xlim()
    assert low < scipy.special.logit(0.2) and scipy.special.logit(0.8) < high


def test_ticks_are_accuracies_in_percent():
    axes, _ = lines(robustness_plot.plot(MODELS, **SETS))
    shares = [float(label.get_text()) / 100 for label in axes.get_xticklabels()]
    np.testing.assert_allclose(axes.get_xticks(), scipy.special.logit(shares))
    assert axes.get_xlabel() == "accuracy on ref (%)"
    assert axes.get_ylabel() == "mean accuracy on 1 shifted sets (%)"


def test_the_published_models_are_drawn_with_one_of_our_own():
    accuracies = dict.fromkeys(robustness.published_models()[0].accuracies, 0.4)
    own = robustness.Model("mine", "zero_shot", accuracies)
    axes, by_label = lines(robustness_plot.plot(robustness.published_models(), [own]))
    assert {"BASIC-L", "BASIC-M"} == {text.get_text() for text in axes.texts}
    np.testing.assert_allclose(
        by_label["zero-shot models"].get_xydata(),
        scipy.special.logit([[0.857, 0.8406], [0.814, 0.7446]]),
    )
    assert "mine" in by_label


def test_the_same_models_give_the_same_svg():
    first, again = (robustness_plot.plot_uri(MODELS, [OWN], **SETS) for _ in range(2))
    assert first == again
    head, _, data = first.partition(",")
    assert head == "data:image/svg+xml;base64"
    assert b"<svg" in base64.b64decode(data)


def test_own_models_have_colours_of_their_own():
    many = [make(f"own {i}", "zero_shot", 0.5 + i / 20, 0.4) for i in range(3)]
    _, by_label = lines(robustness_plot.plot(MODELS, many, **SETS))
    colors = {by_label[each.name].get_color() for each in many}
    assert len(colors) == 3 and not colors & set(report_plots.COLORS[:2])


def test_nothing_to_draw_and_a_perfect_model_are_refused():
    with pytest.raises(ValueError, match="no model to draw"):
        robustness_plot.plot([], [])
    with pytest.raises(ValueError, match="accuracy 1 has no place on a logit axis"):
        robustness_plot.plot([make("perfect", "zero_shot", 1.0, 0.5)], **SETS)
