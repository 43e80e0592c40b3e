"""How much a zero-shot classifier owes to its class names and prompts.

Classifies each task by several sets of class names and by every template alone, then
by all templates together: the spread, confusions, and the pairs most confused (BASIC
figures 8 to 10). Names and templates are data: `prompt_sensitivity.json`; a file of
one's own has the same form, and may hold other tasks.

Examples:
  python -m experiments.studies.prompt_sensitivity --workdir runs/demo \
      --output runs/prompts
  python -m experiments.studies.prompt_sensitivity --workdir runs/demo \
      --output runs/q --tasks digits,phosphor --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import dataclasses
import json
import pathlib

import numpy as np
from absl import flags

import basic_tf
from basic_tf.data import batches
from basic_tf.evaluation import tasks
from experiments import command_line
from experiments.studies import page, prompt_outcomes

QUICK_EXAMPLES = 500

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_OUTPUT = flags.DEFINE_string("output", None, "Folder for table.json and report.html.")
_TASKS = flags.DEFINE_list("tasks", ["digits", "serif"], "Names of tasks.")
_PROMPTS = flags.DEFINE_string(
    "prompts",
    str(pathlib.Path(__file__).with_suffix(".json")),
    'JSON: {task: {"templates": [...], "class_names": {set: {name: other name}}}}.',
)
_QUICK = flags.DEFINE_boolean("quick", False, f"{QUICK_EXAMPLES} images of each task.")


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_OUTPUT.value)
    run = basic_tf.load(_WORKDIR.value)
    choices = json.loads(pathlib.Path(_PROMPTS.value).read_text())
    for name in _TASKS.value:
        tasks.check_name(name)
    rows, figures, summaries = [], [], []
    for name in _TASKS.value:
        task = tasks.load_task(name, run.config.data.data_dir)
        if _QUICK.value:
            task = _fewer_examples(task, QUICK_EXAMPLES)
        outcomes = prompt_outcomes.compare(run, task, choices.get(name, {}))
        rows += prompt_outcomes.rows(task, outcomes)
        summaries.append(prompt_outcomes.summary(task, outcomes))
        print(summaries[-1], flush=True)
        load = batches.image_loader(task.examples, run.image_size)
        figures += prompt_outcomes.plots(task, outcomes, load)
    page.write(
        _OUTPUT.value, "Class names and prompts", " ".join(summaries), rows, figures
    )


def _fewer_examples(task, count):
    """Spread over the split, which may be in the order of the classes."""
    places = np.linspace(0, len(task.labels) - 1, min(count, len(task.labels)))
    keep = np.isin(np.arange(len(task.labels)), places.astype(int))
    return dataclasses.replace(
        task, examples=task.examples.select(keep), labels=task.labels[keep]
    )


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir", "output"])
    command_line.run(main)
