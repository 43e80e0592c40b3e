"""Evaluates a run zero-shot and writes its report (`report.html`, `report.json`).

Examples:
  python -m experiments.evaluate --workdir runs/demo
  python -m experiments.evaluate --workdir runs/demo --tasks serif,digits --json
  python -m experiments.evaluate --workdir runs/demo --compare_workdir runs/scratch
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

import basic_tf
from basic_tf.evaluation import report, tasks, zero_shot
from basic_tf.training import run_log
from experiments import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_TASKS = flags.DEFINE_list(
    "tasks", None, "Names of tasks, with commas between; those of the run otherwise."
)
_COMPARE = flags.DEFINE_string(
    "compare_workdir", None, "Another run for the report to show beside this one."
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder for the report; the run's own otherwise."
)
_JSON = flags.DEFINE_boolean("json", False, "Print report.json.")


def main(arguments):
    command_line.refuse(arguments)
    if _TASKS.value is not None and not any(name.strip() for name in _TASKS.value):
        raise ValueError("--tasks names no task; leave it out for those of the run")
    command_line.check_folder(_OUTPUT.value or _WORKDIR.value)
    outcome = _evaluate(_WORKDIR.value)
    compared = _evaluate(_COMPARE.value) if _COMPARE.value else None
    written = report.write(_OUTPUT.value or _WORKDIR.value, outcome, compared)
    if _JSON.value:
        print(json.dumps(written, indent=2))


def _evaluate(workdir):
    run = basic_tf.load(workdir)
    training = pathlib.Path(workdir) / "train.json"
    if not training.is_file():
        raise ValueError(f"{workdir} is not trained to its end; train it on")
    names = _TASKS.value or run.config.evaluation.tasks
    for name in names:
        tasks.check_name(name)
    results = {}
    for name in names:
        task = tasks.load_task(name, run.config.data.data_dir)
        results[name] = zero_shot.evaluate(run, task)
        metrics = results[name].metrics
        print(
            f"{name}: top-1 {metrics['top1']:.4f}  top-5 {metrics['top5']:.4f}  "
            f"mean per-class recall {metrics['mean_per_class_recall']:.4f}  "
            f"({metrics['num_examples']} images, {metrics['num_classes']} classes)",
            file=sys.stderr if _JSON.value else sys.stdout,
            flush=True,
        )
    return report.RunOutcome(
        workdir=workdir,
        run=run,
        results=results,
        rows=run_log.read_rows(workdir),
        training=json.loads(training.read_text()),
    )


if __name__ == "__main__":
    flags.mark_flag_as_required("workdir")
    command_line.run(main)
