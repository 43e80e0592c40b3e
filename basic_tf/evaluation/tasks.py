"""What can be evaluated: tasks as data (`tasks.json`)."""

import dataclasses
import json
import pathlib

import numpy as np

from basic_tf.data import checking, example_table, sources
from basic_tf.evaluation import prompts


@dataclasses.dataclass(frozen=True)
class Task:
    """A zero-shot classification task.

    Attributes:
        name: its key in `tasks.json`.
        examples: `sources.Examples` of the split.
        labels: `[N]` int, indices into `class_names`.
        class_names: the C names to choose from: those that occur in the split.
        templates: texts with one slot `{}`.
    """

    name: str
    examples: sources.Examples
    labels: np.ndarray
    class_names: list
    templates: list


def known_tasks():
    """`{name: {"source", "templates", "description"}}` of all tasks."""
    return json.loads(pathlib.Path(__file__).with_name("tasks.json").read_text())


def check_name(name):
    """Refuses an unknown task.

    Raises:
        ValueError: naming the known ones.
    """
    if name not in known_tasks():
        raise ValueError(f"no task {name!r}; known: {', '.join(known_tasks())}")


def load_task(name, data_dir=None):
    """Reads a task's split; images that cannot be decoded are left out.

    Raises:
        ValueError: for an unknown task, naming the known ones, and if more than
            `example_table.MAX_BAD_FRACTION` of the images are broken.
    """
    check_name(name)
    task = known_tasks()[name]
    examples = checking.check_images(sources.load(task["source"], data_dir))
    example_table.refuse_bad(task["source"], examples)
    present, labels = np.unique(examples.labels, return_inverse=True)
    return Task(
        name=name,
        examples=examples,
        labels=labels,
        class_names=[examples.label_names[index] for index in present],
        templates=prompts.load_templates(task["templates"]),
    )
