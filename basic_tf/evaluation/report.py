"""The report of an evaluated run: `report.json` for programs, `report.html` for people.

The page is one file that loads nothing: pictures are `data:` URIs, and every text from
the run is escaped.
"""

import dataclasses
import json
import pathlib
import shlex

import jinja2
import numpy as np

import basic_tf
from basic_tf import files, memory
from basic_tf.evaluation import (
    intervals,
    report_plots,
    report_shifts,
    report_task,
    zero_shot,
)

MAX_IMAGE_SIZE = 64
MEASURED = {  # kind -> the metrics that the page shows
    "retrieval": [
        f"{way}_r{k}" for way in ("image_to_text", "text_to_image") for k in (1, 5, 10)
    ],
    "linear_probe": ["top1", "mean_per_class_recall", "lambda", "num_training"],
    "geometry": [
        *("alignment", "modality_gap", "image_uniformity", "text_uniformity"),
        *("image_rank_me", "text_rank_me", "num_pairs"),
    ],
}
TRAIN_KEYS = (
    "seconds",
    "examples_per_second",
    "input_examples_per_second",
    "cpu_utilization",
    "phases",
)


@dataclasses.dataclass(frozen=True)
class RunOutcome:
    """A run and how it did.

    Attributes:
        workdir: folder of the run.
        run: `loaded_run.LoadedRun`.
        results: `{name of the evaluation: TaskResult}`.
        rows: rows of its `metrics.jsonl`.
        training: content of its `train.json`.
        descriptions: `{name of a task: what it is}`.
        sweep: `{step of a checkpoint: {task: accuracy}}`, where all were evaluated.
    """

    workdir: str
    run: object
    results: dict
    rows: list
    training: dict
    descriptions: dict = dataclasses.field(default_factory=dict)
    sweep: dict = dataclasses.field(default_factory=dict)

    def of_kind(self, kind):
        """`{task: TaskResult}` of one kind."""
        return {
            name.partition(":")[0]: result
            for name, result in self.results.items()
            if result.kind == kind
        }


def write(output_dir, outcome, compared=()):
    """Writes `report.json` and `report.html`, each whole or not at all.

    Args:
        output_dir: folder, made when missing.
        outcome: `RunOutcome`.
        compared: others to show beside it; their numbers stand in `report.json` under
            the names of their folders.

    Returns:
        The content of `report.json`.

    Raises:
        ValueError: if that name is one of the file's own keys.
    """
    content = _numbers(outcome)
    names = _names([outcome, *compared])[1:]
    for name, other in zip(names, compared, strict=True):
        if name in content:
            raise ValueError(f"a compared run cannot be called {name!r}: rename it")
        content[name] = _numbers(other)
    page = render(outcome, compared, output_dir)
    text = json.dumps(content, indent=2)
    output_dir = pathlib.Path(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    files.write_whole(output_dir / "report.json", text)
    files.write_whole(output_dir / "report.html", page)
    return json.loads(text)


def render(outcome, compared=(), output_dir=None):
    """The page as a string; arguments as those of `write`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": lambda share: f"{100 * share:.1f}%",
        "points": lambda share: f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}"),
        "plain": lambda key: key.replace("_", " ").capitalize(),
        "count": lambda number: f"{number:,.0f}",
        "duration": _duration,
    }
    outcomes = [outcome, *compared]
    size = min(outcome.run.image_size, MAX_IMAGE_SIZE)
    return environment.get_template("report.html.jinja").render(
        version=basic_tf.__version__,
        runs=[_run(*pair) for pair in zip(outcomes, _names(outcomes), strict=True)],
        splits=_splits(outcomes),
        other_metrics=_other_metrics(outcomes),
        shifts=_shifts(outcomes),
        shift_plot=report_shifts.plot_uri(_shifts(outcomes)),
        measured=[_measured(outcomes, kind) for kind in MEASURED],
        tasks=[
            report_task.describe(name, result, size)
            for name, result in outcome.of_kind(zero_shot.KIND).items()
            if result.ranking
        ],
        matrix_classes=report_task.MATRIX_CLASSES,
        commands=_commands(outcomes, output_dir),
    )


def _numbers(outcome):
    """One run's part of `report.json`."""
    training = outcome.training
    return {
        **{kind: _metrics(outcome, kind) for kind in (zero_shot.KIND, *MEASURED)},
        "shifts": report_shifts.rows(_names([outcome])[0], _accuracies(outcome)),
        "sweep": outcome.sweep,
        "train": {key: training[key] for key in TRAIN_KEYS},
        "peak_memory_mb": _peak_memory_mb(outcome),
        "parameters": training["parameters"],
        "config": _configuration(outcome),
    }


def _metrics(outcome, kind):
    return {name: result.metrics for name, result in outcome.of_kind(kind).items()}


def _accuracies(outcome):
    found = _metrics(outcome, zero_shot.KIND)
    return {name: m["top1"] for name, m in found.items() if "top1" in m}


def _shifts(outcomes):
    """Rows of all runs; see `report_shifts.rows`."""
    pairs = zip(_names(outcomes), outcomes, strict=True)
    return [
        row for name, o in pairs for row in report_shifts.rows(name, _accuracies(o))
    ]


def _measured(outcomes, kind):
    """A table of what is measured beside zero-shot classification.

    Returns:
        `{"title", "columns", "rows": [(run, task, [value or None])]}`.
    """
    keys = MEASURED[kind]
    rows = [
        (run, task, [metrics.get(key) for key in keys])
        for run, outcome in zip(_names(outcomes), outcomes, strict=True)
        for task, metrics in _metrics(outcome, kind).items()
    ]
    return {"kind": kind, "columns": keys, "rows": rows}


def _peak_memory_mb(outcome):
    """Of the training and of this process, the larger."""
    return max(outcome.training["peak_memory_mb"], memory.peak_memory_mb())


def _configuration(outcome):
    return json.loads(outcome.run.config.to_json_best_effort())


def _names(outcomes):
    """Short names of the runs, that differ."""
    names = [pathlib.Path(outcome.workdir).resolve().name for outcome in outcomes]
    return (
        names if len(set(names)) == len(names) else [str(o.workdir) for o in outcomes]
    )


def _run(outcome, name):
    """What the page says about a run and its training."""
    config = _configuration(outcome)
    return {
        "name": name,
        "workdir": str(outcome.workdir),
        "config": config,
        "config_json": json.dumps(config, indent=2, ensure_ascii=False),
        "training": outcome.training,
        "peak_memory_mb": _peak_memory_mb(outcome),
        "phases": _phases(outcome, config),
        "sweep": report_plots.sweep_uri(outcome.sweep, name) if outcome.sweep else None,
        "examples": sum(p["examples"] for p in outcome.training["phases"].values()),
    }


def _phases(outcome, config):
    phases = []
    for number, (name, totals) in enumerate(outcome.training["phases"].items()):
        color = report_plots.COLORS[number % len(report_plots.COLORS)]
        rows = [row for row in outcome.rows if row["phase"] == name]
        curves = {}
        for metric in report_plots.CURVES:
            with_metric = [row for row in rows if metric in row]
            if with_metric:
                curves[metric] = report_plots.curve_uri(with_metric, metric, color)
        settings = {key: config["phases"][name][key] for key in ("kind", "batch_size")}
        phases.append(
            totals | settings | {"name": name, "color": color, "curves": curves}
        )
    return phases


def _splits(outcomes):
    """Rows of the table of accuracies: tasks of one class an image, for each run."""
    splits = []
    for name, results in _by_task(outcomes):
        found = next(result.metrics for result in results if result)
        if "top1" not in found:
            continue
        splits.append(
            {
                "name": name,
                "description": outcomes[0].descriptions.get(name, ""),
                "num_examples": found["num_examples"],
                "num_classes": found["num_classes"],
                "metrics": [result and result.metrics for result in results],
                "intervals": [_difference(results[0], other) for other in results[1:]],
            }
        )
    return splits


def _difference(first, second):
    """95 % interval of the difference in top-1 on the same examples, or None."""
    if not first or not second or not first.ranking or not second.ranking:
        return None
    if not np.array_equal(first.labels, second.labels):
        return None
    return intervals.paired_difference(
        first.ranking.ranks == 0, second.ranking.ranks == 0
    )


def _other_metrics(outcomes):
    """Rows of the tasks whose main metric is not top-1: name, metric, of each run."""
    rows = []
    for name, results in _by_task(outcomes):
        found = [result and result.metrics for result in results]
        metric = next(metrics["metric"] for metrics in found if metrics)
        if metric != "top1":
            rows.append((name, metric.replace("_", " "), found))
    return rows


def _by_task(outcomes):
    """`(task, [zero-shot TaskResult or None of each run])`."""
    found = [outcome.of_kind(zero_shot.KIND) for outcome in outcomes]
    for name in dict.fromkeys(name for results in found for name in results):
        yield name, [results.get(name) for results in found]


def _commands(outcomes, output_dir):
    """`(what it does, command line)` of what leads to this page."""
    commands = []
    for outcome in outcomes:
        again = ["python", "-m", "experiments.train", "--config"]
        again += [f"experiments/configs/repeat.py:{outcome.workdir}"]
        again += ["--workdir", f"{outcome.workdir}-again"]
        commands.append((f"Train {outcome.workdir} again", shlex.join(again)))
    evaluate = ["python", "-m", "experiments.evaluate"]
    evaluate += ["--workdir", str(outcomes[0].workdir)]
    if outcomes[0].results:
        evaluate += ["--tasks", ",".join(outcomes[0].results)]
    for other in outcomes[1:]:
        evaluate += ["--compare_workdir", str(other.workdir)]
    if outcomes[0].sweep:
        evaluate += ["--sweep", "checkpoints"]
    if output_dir and pathlib.Path(output_dir) != pathlib.Path(outcomes[0].workdir):
        evaluate += ["--output", str(output_dir)]
    return [*commands, ("Evaluate, and write this page", shlex.join(evaluate))]


def _duration(seconds):
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
