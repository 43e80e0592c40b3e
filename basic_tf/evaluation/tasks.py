"""What can be evaluated: the data of a task with its classes and texts."""

import dataclasses
import json

import numpy as np

from basic_tf.data import checking, example_table, sources, tfds_reading
from basic_tf.evaluation import (
    class_names,
    readings,
    task_data,
    task_files,
    task_metrics,
)


@dataclasses.dataclass(frozen=True)
class Task:
    """A split with its classes and texts.

    Attributes:
        name: its key in the task files.
        examples: `sources.Examples` of the split.
        labels: `[N]` int, indices into `class_names`; None for a task of another kind.
        class_names: the C names to choose from.
        templates: texts with one slot.
        metric: see `task_metrics`.
        targets: `[N, C]` int, of a task with several labels; see
            `task_metrics.multi_label`.
        source: name of where the examples are from.
    """

    name: str
    examples: sources.Examples
    labels: np.ndarray | None
    class_names: list
    templates: list
    metric: str = "top1"
    targets: np.ndarray | None = None
    source: str = ""


def check_name(name, known=None):
    """Refuses an unknown task.

    Args:
        name: of the task.
        known: `task_files.known_tasks()`, read when None.

    Raises:
        ValueError: naming the known ones.
    """
    known = known or task_files.known_tasks()
    if name not in known:
        raise ValueError(f"no task {name!r}; known: {', '.join(known)}")


def load_task(name, data_dir=None, known=None, prompts=None):
    """Reads a task's split; images that cannot be decoded are left out.

    Args:
        name: of the task.
        data_dir: folder of the data; TFDS's own when None.
        known: `task_files.known_tasks()`, read when None.
        prompts: `prompt_sets.PromptSets` that go before the task's own.

    Raises:
        ValueError: for an unknown task, naming the known ones; for data that are not
            there, with what to download; if more than `example_table.MAX_BAD_FRACTION`
            of the images are broken; and for class names that do not fit the labels.
    """
    known = known or task_files.known_tasks()
    check_name(name, known)
    task = known[name]
    examples = load_checked(name, task, data_dir)
    made = Task(
        name=name,
        examples=examples,
        labels=None,
        class_names=[],
        templates=templates(name, task, prompts),
        metric=task["metric"],
        source=task["source"],
    )
    if task["metric"] == task_metrics.RETRIEVAL:
        return made
    if task["metric"] == task_metrics.MULTI_LABEL:
        targets, names = readings.multi_label_targets(examples)
        names = class_names.choose(name, task, names, prompts)
        return dataclasses.replace(made, targets=targets, class_names=names)
    labels, names = _classes(name, task, examples, prompts)
    return dataclasses.replace(made, labels=labels, class_names=names)


def load_checked(name, task, data_dir=None):
    """The examples of a task whose images can be decoded.

    Args:
        name: of the task.
        task: its fields.
        data_dir: see `load_task`.

    Raises:
        ValueError: as `load_task`, of the data.
    """
    task_data.require(name, task, data_dir)
    examples = checking.check_images(_read(task, data_dir))
    example_table.refuse_bad(task["source"], examples)
    if not len(examples):
        raise ValueError(f"{name}: no example to evaluate")
    return examples


def load_examples(task, left_out, data_dir=None):
    """The examples of a task that was evaluated before; no image is decoded.

    Args:
        task: its fields.
        left_out: keys of the examples that could not be decoded.
        data_dir: see `load_task`.
    """
    examples, left_out = _read(task, data_dir), set(left_out)
    if not left_out:
        return examples
    return examples.select([key not in left_out for key in examples.keys])


def templates(name, task, prompts=None):
    """The templates of a task: imported ones, or its own.

    Args:
        name: of the task.
        task: its fields.
        prompts: `prompt_sets.PromptSets` or None.
    """
    imported = prompts.templates if prompts else {}
    key = task.get("imported_templates", name)
    return imported.get(key) or task_files.templates(task)


def _read(task, data_dir):
    source = task_data.resolve(task["source"], data_dir)
    if "reading" in task:
        _, name, split = source.split(":", 2)
        reading = readings.READINGS[task["reading"]]
        return tfds_reading.load(name, split, reading, str(task_data.folder(data_dir)))
    examples = sources.load(source, str(task_data.folder(data_dir)))
    if "rename" in task:
        mapping = _read_mapping(task["rename"], data_dir)
        unknown = [n for n in examples.label_names if n not in mapping]
        if unknown:
            raise ValueError(f"{task['rename']} does not name {', '.join(unknown[:5])}")
        names = [mapping[name] for name in examples.label_names]
        examples = dataclasses.replace(examples, label_names=names)
    if "keep" in task:
        examples = _keep(examples, _read_mapping(task["keep"], data_dir))
    return examples


def _read_mapping(path, data_dir):
    path = task_data.folder(data_dir) / path
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}, which comes with the data")
    return json.loads(path.read_text(encoding="utf-8"))


def _keep(examples, kept):
    """The examples of the classes in `kept`, which are numbered anew."""
    indices = [i for i, name in enumerate(examples.label_names) if name in kept]
    numbers = {index: number for number, index in enumerate(indices)}
    chosen = examples.select([label in numbers for label in examples.labels])
    labels = [numbers[label] for label in chosen.labels]
    return dataclasses.replace(
        chosen,
        labels=labels,
        label_sets=[[label] for label in labels],
        label_names=[examples.label_names[index] for index in indices],
    )


def labels_of(name, task, examples):
    """`(labels [N] int, names of the classes)` of examples, as their source has them.

    Args:
        name: of the task.
        task: its fields.
        examples: `sources.Examples`.

    Raises:
        ValueError: for examples without a label, with their number.
    """
    labels = np.array(examples.labels, np.int64)
    if not len(labels) or labels.min() < 0:
        count = int(np.sum(labels < 0)) if len(labels) else len(examples)
        raise ValueError(f"{name}: {count} of {len(examples)} examples have no label")
    if not task.get("wordnet"):
        return labels, examples.label_names
    places = class_names.wordnet_places(examples.label_names)
    return places[labels], class_names.wordnet_ids()


def _classes(name, task, examples, prompts):
    """`(labels [N], names)` of the classes to choose from."""
    labels, label_names = labels_of(name, task, examples)
    names = class_names.choose(name, task, label_names, prompts)
    if task.get("only_present"):
        present, labels = np.unique(labels, return_inverse=True)
        names = [names[index] for index in present]
    expected = task.get("num_classes", len(names))
    if len(names) != expected:
        raise ValueError(
            f"{name}: {len(names)} classes occur and there should be {expected}: "
            "the data are not whole"
        )
    return labels, names
