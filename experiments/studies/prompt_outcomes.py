"""A task classified by several sets of class names and templates: table and plots."""

import dataclasses

import numpy as np
from matplotlib import figure

from basic_tf.evaluation import (
    confusion,
    embedder,
    prompts,
    report_plots,
    zero_shot,
)

OWN_NAMES = "names of the task"
MATRIX_CLASSES = 40  # beyond, a confusion matrix is too large to read
NUM_PAIRS = 6


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A task classified by one set of class names.

    Attributes:
        name_set: what the set is called.
        class_names: C names of it, in the order of the task's classes.
        by_template: `{template: top-1 of it alone}`.
        predictions: `[N]` int, by all templates together.
        top1: of them.
    """

    name_set: str
    class_names: list
    by_template: dict
    predictions: np.ndarray
    top1: float


def compare(run, task, choices):
    """Classifies a task by each set of names.

    Args:
        run: `loaded_run.LoadedRun`.
        task: `tasks.Task`.
        choices: `{"templates": [...], "class_names": {set: {name: other name}}}`; the
            templates of the task where there are none. A name that a set leaves out
            stays.

    Returns:
        List of `Outcome`, the first by the names of the task.

    Raises:
        ValueError: for a set with names that are not of the task, or with one name for
            two classes.
    """
    templates = choices.get("templates") or task.templates
    prompts.check_templates(templates)
    sets = {OWN_NAMES: task.class_names}
    for name_set, names in choices.get("class_names", {}).items():
        sets[name_set] = rename(name_set, names, task.class_names)
    encoders = embedder.Embedder(run)
    embeddings = encoders.images(task.examples, task.source, task.name)

    def classify(names, chosen):
        weights = zero_shot.classifier(encoders.texts, names, chosen).numpy()
        predictions = np.argmax(embeddings @ weights.T, axis=1)
        return predictions, float(np.mean(predictions == task.labels))

    outcomes = []
    for name_set, names in sets.items():
        by_template = {each: classify(names, [each])[1] for each in templates}
        together = classify(names, templates)
        outcomes.append(Outcome(name_set, names, by_template, *together))
    return outcomes


def rename(name_set, names, class_names):
    """The class names of a task by a set, `{name: other name}`; raises as `compare`."""
    unknown = sorted(set(names) - set(class_names))
    if unknown:
        raise ValueError(
            f"class names {name_set!r} rename {unknown[0]!r}, which is no class; the "
            f"first are {', '.join(class_names[:5])}"
        )
    renamed = [names.get(name, name) for name in class_names]
    for name in renamed:
        if renamed.count(name) > 1:
            raise ValueError(f"class names {name_set!r} call two classes {name!r}")
    return renamed


def rows(task, outcomes):
    """The table: a row for each set and template, and for all templates together."""
    table = []
    for outcome in outcomes:
        together = f"all {len(outcome.by_template)} together"
        for template, top1 in {**outcome.by_template, together: outcome.top1}.items():
            table.append(
                {
                    "task": task.name,
                    "class names": outcome.name_set,
                    "template": template,
                    "top1": round(top1, 4),
                    "examples": len(task.labels),
                }
            )
    return table


def summary(task, outcomes):
    """A sentence: how well each set does, and how far its templates spread."""
    parts = []
    for outcome in outcomes:
        alone = list(outcome.by_template.values())
        parts.append(
            f"{outcome.name_set} {outcome.top1:.3f} (templates alone {min(alone):.3f} "
            f"to {max(alone):.3f}, standard deviation {np.std(alone):.3f})"
        )
    return f"Top-1 of {task.name}, {len(task.labels)} images: {'; '.join(parts)}."


def plots(task, outcomes, load_image):
    """Figures: the spread, the confusions, and images of the most confused pairs.

    Args:
        task: `tasks.Task`.
        outcomes: from `compare`.
        load_image: from the index of an example to its image, `[S, S, 3]` in [0, 1].

    Returns:
        List of matplotlib figures, without confusions where classes are too many.
    """
    figures = [_spread_plot(task, outcomes)]
    if len(task.class_names) <= MATRIX_CLASSES:
        figures.append(_confusion_plot(task, outcomes))
    return [*figures, _pair_plot(task, outcomes, load_image)]


def _spread_plot(task, outcomes):
    """Accuracy of each template and of all together, a line for each set of names."""
    plot = figure.Figure(figsize=(7, 1 + 0.5 * len(outcomes)), layout="constrained")
    axes = plot.subplots()
    dots, bar, *_ = report_plots.COLORS
    for row, outcome in enumerate(outcomes):
        alone = list(outcome.by_template.values())
        label = "one template" if row == 0 else None
        axes.plot(alone, [row] * len(alone), "o", color=dots, label=label, alpha=0.6)
        label = "all together" if row == 0 else None
        axes.plot(outcome.top1, row, "|", color=bar, markersize=22, label=label)
    axes.set_yticks(range(len(outcomes)), [each.name_set for each in outcomes])
    axes.set_ylim(len(outcomes) - 0.5, -0.5)
    axes.set_xlabel(f"{task.name}: zero-shot top-1")
    axes.legend()
    return plot


def _confusion_plot(task, outcomes):
    """Shares of the true class (row) that are predicted as each class, side by side."""
    size = max(3.0, 0.22 * len(task.class_names))
    plot = figure.Figure(figsize=(size * len(outcomes), size + 1), layout="constrained")
    for axes, outcome in zip(
        plot.subplots(1, len(outcomes), squeeze=False)[0], outcomes, strict=True
    ):
        names = outcome.class_names
        matrix = confusion.confusion_matrix(
            task.labels, outcome.predictions, len(names)
        )
        axes.imshow(
            matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1),
            cmap="Blues", vmin=0, vmax=1,
        )  # fmt: skip
        axes.set_title(f"{outcome.name_set}: {outcome.top1:.3f}", fontsize=9)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
    return plot


def _pair_plot(task, outcomes, load_image):
    """The first image of each of the most confused pairs, a row for each set."""
    plot = figure.Figure(
        figsize=(1.6 * NUM_PAIRS, 2 * len(outcomes)), layout="constrained"
    )
    grid = plot.subplots(len(outcomes), NUM_PAIRS, squeeze=False)
    for row, outcome in zip(grid, outcomes, strict=True):
        for axes in row:
            axes.set_axis_off()
        pairs = confusion.most_confused(
            task.labels, outcome.predictions, len(task.class_names), NUM_PAIRS
        )
        for axes, (true, predicted, count, share) in zip(row, pairs, strict=False):
            is_pair = (task.labels == true) & (outcome.predictions == predicted)
            axes.imshow(np.asarray(load_image(int(np.flatnonzero(is_pair)[0]))))
            names = outcome.class_names
            title = f"{names[true]}\ntaken for {names[predicted]}"
            axes.set_title(f"{title}\n{count} ({share:.0%})", fontsize=7)
        row[0].text(
            -0.1, 0.5, outcome.name_set, fontsize=8, rotation=90,
            ha="right", va="center", transform=row[0].transAxes,
        )  # fmt: skip
    return plot
