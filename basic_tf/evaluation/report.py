"""The report of an evaluated run: `report.json` for programs, `report.html` for people.

The page is one file that loads nothing: pictures are `data:` URIs, and every text from
the run is escaped.
"""

import json
import pathlib
import shlex

import jinja2

import basic_tf
from basic_tf import files, memory
from basic_tf.evaluation import (
    evaluations,
    report_plots,
    report_shifts,
    report_tables,
    report_task,
    run_outcome,
    zero_shot,
)

MAX_IMAGE_SIZE = 64
TRAIN_KEYS = (
    "seconds",
    "examples_per_second",
    "input_examples_per_second",
    "cpu_utilization",
    "phases",
)


def write(output_dir, outcome, compared=()):
    """Writes `report.json` and `report.html`, each whole or not at all.

    Args:
        output_dir: folder, made when missing.
        outcome: `run_outcome.RunOutcome`.
        compared: others to show beside it; their numbers stand in `report.json` under
            the names of their folders.

    Returns:
        The content of `report.json`.

    Raises:
        ValueError: if that name is one of the file's own keys.
    """
    content = _numbers(outcome)
    names = run_outcome.names([outcome, *compared])[1:]
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
        runs=[
            _run(*pair)
            for pair in zip(outcomes, run_outcome.names(outcomes), strict=True)
        ],
        splits=report_tables.splits(outcomes),
        other_metrics=report_tables.other_metrics(outcomes),
        shifts=report_tables.shifts(outcomes),
        shift_plot=report_shifts.plot_uri(report_tables.shifts(outcomes)),
        measured=[
            report_tables.measured(outcomes, kind) for kind in report_tables.MEASURED
        ],
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
        **{kind: outcome.metrics_of_kind(kind) for kind in evaluations.KINDS},
        "shifts": report_shifts.rows(
            run_outcome.names([outcome])[0], outcome.accuracies()
        ),
        "sweep": outcome.sweep,
        "train": {key: training[key] for key in TRAIN_KEYS},
        "peak_memory_mb": _peak_memory_mb(outcome),
        "parameters": training["parameters"],
        "config": _configuration(outcome),
    }


def _peak_memory_mb(outcome):
    """Of the training and of this process, the larger."""
    return max(outcome.training["peak_memory_mb"], memory.peak_memory_mb())


def _configuration(outcome):
    return json.loads(outcome.run.config.to_json_best_effort())


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
