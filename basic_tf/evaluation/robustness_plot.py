"""Figure 3 of BASIC: shifted against reference accuracy, with a model of one's own."""

import numpy as np
from matplotlib.figure import Figure

from basic_tf.evaluation import report_plots, robustness

TICKS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
    *(0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
)
MARGIN = 0.3  # logits beyond the outermost points
LABELS = {"baseline": "baselines", "zero_shot": "zero-shot models"}


def plot(models, own=(), reference=robustness.REFERENCE, shifted=robustness.SHIFTED):
    """Points of all models on logit axes, the line of each kind, and y = x.

    A kind of which two models differ in reference accuracy has its line; one's own
    models are drawn as stars and are of no line.

    Args:
        models: published `robustness.Model`s.
        own: further ones, to stand out.
        reference: name of the set on the horizontal axis.
        shifted: names of the sets whose mean is on the vertical axis.

    Returns:
        A matplotlib `Figure`.

    Raises:
        ValueError: as `robustness.means` and `robustness.logit`, and for no model.
    """
    if not models and not own:
        raise ValueError("no model to draw")
    figure = Figure(figsize=(5.5, 4.5), layout="constrained")
    axes = figure.add_subplot()
    places = robustness.points([*models, *own], reference, shifted)
    logits = robustness.logit(places)
    limits = np.array([logits.min() - MARGIN, logits.max() + MARGIN])
    axes.plot(limits, limits, "--", color="#888", linewidth=1, label="y = x")
    for kind, color in zip(robustness.KINDS, report_plots.COLORS, strict=False):
        of_kind = [model for model in models if model.kind == kind]
        if of_kind:
            _draw_kind(axes, of_kind, kind, color, limits, (reference, shifted))
    for number, model in enumerate(own):
        color = report_plots.COLORS[2 + number % (len(report_plots.COLORS) - 2)]
        x, y = robustness.logit(robustness.points([model], reference, shifted)[0])
        axes.plot(x, y, "*", color=color, markersize=14, label=model.name)
    for model, (x, y) in zip(models, logits, strict=False):
        axes.annotate(
            model.name, (x, y), (5, -10), textcoords="offset points", fontsize=8
        )
    _set_axes(axes, limits, reference, shifted)
    return figure


def plot_uri(*arguments, **options):
    """`plot` as an SVG, a `data:` URI for a page."""
    return report_plots.figure_uri(plot(*arguments, **options), salt="robustness")


def _draw_kind(axes, models, kind, color, limits, sets):
    pairs = robustness.points(models, *sets)
    axes.plot(*robustness.logit(pairs).T, "o", color=color, label=LABELS[kind])
    if len(np.unique(pairs[:, 0])) > 1:
        line = robustness.fit(pairs)
        axes.plot(limits, line.slope * limits + line.intercept, color=color)


def _set_axes(axes, limits, reference, shifted):
    ticks = robustness.logit(TICKS)
    for axis, limit in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        limit(limits)
        axis.set_ticks(ticks, [f"{100 * tick:g}" for tick in TICKS])
        limit(limits)  # ticks beyond would widen it
    axes.set_xlabel(f"accuracy on {reference} (%)")
    axes.set_ylabel(f"mean accuracy on {len(shifted)} shifted sets (%)")
    axes.grid(color="#e3e6ea", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False)
