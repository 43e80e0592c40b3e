"""Evaluates a run and writes its report (`report.html`, `report.json`).

A task is evaluated by its own measure: classification by names, or retrieval.
`TASK:linear_probe` and `TASK:geometry` measure others.

What a task gives is kept in `results/TASK.json`, with all that it depends on; a task
whose result is there is not evaluated again.

Examples:
  python -m experiments.evaluate --workdir runs/demo
  python -m experiments.evaluate --workdir runs/demo --tasks serif,digits --json
  python -m experiments.evaluate --workdir runs/demo --compare_workdir runs/scratch \\
      --compare_workdir runs/large
  python -m experiments.evaluate --workdir runs/demo --tasks serif --sweep checkpoints
  python -m experiments.evaluate --list_tasks
  python -m experiments.evaluate --workdir runs/clip --data_dir /data/tfds \\
      --tasks flickr30k,cifar10,cifar10:linear_probe,mscoco:geometry
  python -m experiments.evaluate --workdir runs/clip --tasks imagenet,pets \\
      --prompts prompts --data_dir /data/tfds --output runs/clip/openai_prompts
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

import basic_tf
from basic_tf.evaluation import (
    embedder,
    evaluations,
    kept_results,
    prompt_sets,
    report,
    report_tables,
    run_outcome,
    task_data,
    task_files,
    zero_shot,
)
from basic_tf.training import checkpoints, loaded_run, run_log
from experiments import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_TASKS = flags.DEFINE_list(
    "tasks",
    None,
    "TASK or TASK:KIND, with commas between; "
    "those of the run otherwise. Kinds: " + ", ".join(evaluations.KINDS),
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
_COMPARE = flags.DEFINE_multi_string(
    "compare_workdir", [], "Another run for the report to show beside; repeatable."
)
_SWEEP = flags.DEFINE_enum(
    "sweep", None, ["checkpoints"], "Evaluate all kept checkpoints of each run."
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
    prompts = prompt_sets.read(_PROMPTS.value) if _PROMPTS.value else None
    setting = evaluations.Setting(known, _DATA_DIR.value, prompts)
    for name in _TASKS.value or ():
        evaluations.parse(name, setting)
    output = pathlib.Path(_OUTPUT.value or _WORKDIR.value)
    command_line.check_folder(output)
    outcome = _evaluate(_WORKDIR.value, output, setting)
    compared = []
    for number, workdir in enumerate(_COMPARE.value):
        number = f"_{number + 1}" if number else ""
        folder = output / f"compared{number}" if _OUTPUT.value else workdir
        compared.append(_evaluate(workdir, pathlib.Path(folder), setting))
    written = report.write(output, outcome, compared)
    if _JSON.value:
        print(json.dumps(written, indent=2))


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


def _evaluate(workdir, folder, setting):
    """The `RunOutcome` of a run, whose results `folder` keeps."""
    run = basic_tf.load(workdir)
    training = pathlib.Path(workdir) / "train.json"
    if not training.is_file():
        raise ValueError(f"{workdir} is not trained to its end; train it on")
    data_dir = setting.data_dir or run.config.data.data_dir
    setting = evaluations.Setting(setting.known, data_dir, setting.prompts)
    names = _TASKS.value or run.config.evaluation.tasks
    wanted = [evaluations.parse(name, setting) for name in names]
    encoders = embedder.Embedder(run, _BATCH_SIZE.value, folder / "features")
    newest = loaded_run.newest_checkpoint(workdir)
    found = _keep(wanted, encoders, folder / "results", workdir, newest)
    return run_outcome.RunOutcome(
        workdir=workdir,
        run=run,
        results=found,
        rows=run_log.read_rows(workdir),
        training=json.loads(training.read_text()),
        descriptions={each.task: each.fields.get("description", "") for each in wanted},
        sweep=_sweep(wanted, encoders, folder / "results", workdir, found),
    )


def _sweep(wanted, encoders, folder, workdir, newest_found):
    """`{step: {task: top-1}}` of all checkpoints; empty unless it is asked for."""
    if not _SWEEP.value:
        return {}
    model = loaded_run.model_variables(encoders.run.model)
    wanted = [each for each in wanted if each.kind == zero_shot.KIND]
    *earlier, (last, newest) = checkpoints.by_step(f"{workdir}/checkpoints").items()
    found = {}
    for step, prefix in earlier:
        checkpoints.restore(prefix, model)
        print(prefix.name, file=sys.stderr)
        found[step] = _keep(wanted, encoders, folder / prefix.name, workdir, prefix)
    checkpoints.restore(newest, model)
    found[last] = {each.name: newest_found[each.name] for each in wanted}
    return {
        step: {name: result.metrics["value"] for name, result in results.items()}
        for step, results in found.items()
    }


def _keep(wanted, encoders, folder, workdir, checkpoint):
    details = {
        "workdir": str(workdir),
        "checkpoint": checkpoint.name,
        "batch_size": _BATCH_SIZE.value,
    }
    return kept_results.evaluate(wanted, encoders, folder, details, _announce)


def _announce(name, result, was_finished):
    """A line: the main metric with its interval, and those that all share."""
    found = result.metrics
    parts = []
    if "interval" in found:
        low, high = found["interval"]
        parts.append(
            f"{found['metric']} {found['value']:.4f} ({low:.4f} to {high:.4f})"
        )
    shown = report_tables.MEASURED.get(result.kind) or zero_shot.SHOWN
    parts += [
        f"{key.replace('_', ' ')} {found[key]:.4g}"
        for key in shown
        if key in found and key != found.get("metric")
    ]
    print(
        f"{name}: {'  '.join(parts)}  ({_counts(found)})"
        f"{'; evaluated before' * was_finished}",
        file=sys.stderr if _JSON.value else sys.stdout,
        flush=True,
    )


def _counts(found):
    counts = {
        "num_examples": "images",
        "num_images": "images",
        "num_texts": "captions",
        "num_pairs": "pairs",
        "num_classes": "classes",
    }
    return ", ".join(f"{found[k]} {what}" for k, what in counts.items() if k in found)


if __name__ == "__main__":
    command_line.run(main)
