"""Learning curves of the report, as SVG in `data:` URIs."""

import io

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from basic_tf import data_uris

# Okabe and Ito's colours, which all kinds of colour vision tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
CURVES = {  # metric -> (label of its axis, factor to the label's unit)
    "loss": ("loss (nats)", 1.0),
    "accuracy": ("accuracy in the batch (%)", 100.0),
    "temperature": ("temperature τ", 1.0),
}


def curve_uri(rows, metric, color):
    """An SVG of a metric over the steps of the run.

    Args:
        rows: rows of `metrics.jsonl` with `"total_step"` and the metric.
        metric: one of `CURVES`.
        color: of the curve.
    """
    label, factor = CURVES[metric]
    points = [(row["total_step"], factor * row[metric]) for row in rows]
    return _curves_uri({metric: points}, label, [color], salt=metric)


def sweep_uri(sweep, name):
    """An SVG of what each task gives at each checkpoint of a run.

    Args:
        sweep: `{step of the run: {task: value in [0, 1]}}`.
        name: of the run.
    """
    tasks = dict.fromkeys(task for values in sweep.values() for task in values)
    curves = {
        task: [(step, 100 * sweep[step][task]) for step in sorted(sweep)]
        for task in tasks
    }
    return _curves_uri(curves, "accuracy (%)", COLORS, salt=f"sweep {name}")


def _curves_uri(curves, label, colors, salt):
    """`{name: [(step, value)]}` as an SVG; more than one have a legend."""
    # No pyplot, which would keep the figure.
    with matplotlib.rc_context({"font.size": 10}):
        figure = Figure(figsize=(4.0, 2.5), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, points) in enumerate(curves.items()):
            axes.plot(
                *zip(*points, strict=True),
                color=colors[number % len(colors)],
                marker="o",
                markersize=3,
                label=name,
            )
        axes.set(xlabel="step of the run", ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(color="#e3e6ea", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        if len(curves) > 1:
            axes.legend(frameon=False, fontsize=8)
        return figure_uri(figure, salt=salt)


def figure_uri(figure, salt):
    """An SVG of a matplotlib figure, the same bytes each time.

    Args:
        figure: `matplotlib.figure.Figure`.
        salt: what its identifiers are made of, for no two SVGs of a page to share any.
    """
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return data_uris.of_content("image/svg+xml", buffer.getvalue())
