"""Evaluates a run zero-shot and writes its report (`report.html`, `report.json`).

What a task gives is kept in `results/TASK.json`, with all that it depends on; a task
whose result is there is not evaluated again.

Examples:
  python -m experiments.evaluate --workdir runs/demo
  python -m experiments.evaluate --workdir runs/demo --tasks serif,digits --json
  python -m experiments.evaluate --workdir runs/demo --compare_workdir runs/scratch
  python -m experiments.evaluate --list_tasks
  python -m experiments.evaluate --workdir runs/clip --tasks imagenet,pets \\
      --prompts prompts --data_dir /data/tfds --output runs/clip/openai_prompts
"""

import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

import basic_tf
from basic_tf.evaluation import (
    prompt_sets,
    report,
    results,
    task_data,
    task_files,
    task_metrics,
    tasks,
    zero_shot,
)
from basic_tf.training import loaded_run, run_log
from experiments import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_TASKS = flags.DEFINE_list(
    "tasks", None, "Names of tasks, with commas between; those of the run otherwise."
)
_LIST_TASKS = flags.DEFINE_boolean(
    "list_tasks", False, "Print all tasks, and which have their data, and stop."
)
_TASK_FILES = flags.DEFINE_list(
    "task_files", [], "JSON files of more tasks, or folders of some."
)
_PROMPTS = flags.DEFINE_string(
    "prompts", None, "Folder of templates and class names; see tools.import_prompts."
)
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of the data; that of the run otherwise."
)
_BATCH_SIZE = flags.DEFINE_integer(
    "batch_size", 256, "Images at a time; changes no result.", lower_bound=1
)
_COMPARE = flags.DEFINE_string(
    "compare_workdir", None, "Another run for the report to show beside this one."
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder for report and results; the run's own otherwise."
)
_JSON = flags.DEFINE_boolean("json", False, "Print report.json, or the list of tasks.")


def main(arguments):
    command_line.refuse(arguments)
    known = task_files.known_tasks(_TASK_FILES.value)
    if _LIST_TASKS.value:
        _list_tasks(known)
        return
    if _WORKDIR.value is None:
        raise ValueError("--workdir is needed: the folder of the run")
    if _TASKS.value is not None and not any(name.strip() for name in _TASKS.value):
        raise ValueError("--tasks names no task; leave it out for those of the run")
    for name in _TASKS.value or ():
        _check(name, known)
    output = pathlib.Path(_OUTPUT.value or _WORKDIR.value)
    command_line.check_folder(output)
    prompts = prompt_sets.read(_PROMPTS.value) if _PROMPTS.value else None
    outcome = _evaluate(_WORKDIR.value, output / "results", known, prompts)
    compared = None
    if _COMPARE.value:
        folder = output / "compared" if _OUTPUT.value else pathlib.Path(_COMPARE.value)
        compared = _evaluate(_COMPARE.value, folder / "results", known, prompts)
    written = report.write(output, outcome, compared)
    if _JSON.value:
        print(json.dumps(written, indent=2))


def _check(name, known):
    tasks.check_name(name, known)
    if known[name]["metric"] == task_metrics.RETRIEVAL:
        raise ValueError(f"{name} is a task of retrieval, not of classification")


def _list_tasks(known):
    rows = [
        {
            "name": name,
            "source": task["source"],
            "metric": task["metric"],
            "is_here": task_data.is_here(task["source"], _DATA_DIR.value),
            "description": task.get("description", ""),
        }
        for name, task in known.items()
    ]
    if _JSON.value:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        here = "here" if row["is_here"] else "missing"
        source = row["source"].partition("?")[0]
        print(f"{row['name']:<16} {here:<8} {row['metric']:<22} {source}")


def _evaluate(workdir, folder, known, prompts):
    run = basic_tf.load(workdir)
    training = pathlib.Path(workdir) / "train.json"
    if not training.is_file():
        raise ValueError(f"{workdir} is not trained to its end; train it on")
    names = _TASKS.value or run.config.evaluation.tasks
    checkpoint = loaded_run.newest_checkpoint(workdir).name
    data_dir = _DATA_DIR.value or run.config.data.data_dir
    model_hash = results.model_fingerprint(run.model)
    wanted, records = {}, {}
    for name in names:  # what cannot be is refused before the first is evaluated
        _check(name, known)
        wanted[name] = results.identity(
            name, known[name], model_hash, run.image_size, prompts
        )
        records[name] = results.find(folder, name, wanted[name])
        task_data.require(name, known[name], data_dir)
    found = {}
    for name in names:
        if records[name]:
            left_out = records[name]["left_out"]
            examples = tasks.load_examples(known[name], left_out, data_dir)
            found[name] = results.restore(folder, records[name], examples)
        else:
            task = tasks.load_task(name, data_dir, known, prompts)
            start = time.monotonic()
            found[name] = zero_shot.evaluate(run, task, _BATCH_SIZE.value)
            details = {
                "workdir": str(workdir),
                "checkpoint": checkpoint,
                "batch_size": _BATCH_SIZE.value,
                "seconds": round(time.monotonic() - start, 3),
            }
            results.write(folder, name, wanted[name], task, found[name], details)
        _print(name, found[name].metrics, bool(records[name]))
    return report.RunOutcome(
        workdir=workdir,
        run=run,
        results=found,
        rows=run_log.read_rows(workdir),
        training=json.loads(training.read_text()),
        descriptions={name: known[name].get("description", "") for name in names},
    )


def _print(name, metrics, was_finished):
    """A line: the main metric with its interval, and those that all share."""
    low, high = metrics["interval"]
    parts = [f"{metrics['metric']} {metrics['value']:.4f} ({low:.4f} to {high:.4f})"]
    parts += [
        f"{title} {metrics[key]:.4f}"
        for key, title in (
            ("top1", "top-1"),
            ("top5", "top-5"),
            ("mean_per_class_recall", "mean per-class recall"),
        )
        if key in metrics and key != metrics["metric"]
    ]
    counts = f"({metrics['num_examples']} images, {metrics['num_classes']} classes)"
    print(
        f"{name}: {'  '.join(parts)}  {counts}{'; evaluated before' * was_finished}",
        file=sys.stderr if _JSON.value else sys.stdout,
        flush=True,
    )


if __name__ == "__main__":
    command_line.run(main)
