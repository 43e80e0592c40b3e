"""Tasks as data: what JSON files define.

A file is an object of a task for each name. `source` alone is needed of its fields:

| field | is |
|---|---|
| `source` | as of `data.sources`; a relative path is one in the folder of the data |
| `training` | the source of labelled images that a linear probe learns from |
| `validation` | that of those it is tuned on; a fifth of `training` without it |
| `metric` | one of `task_metrics.METRICS`; `top1` without it |
| `templates` | a set in `templates.json`, or a list of texts with one slot |
| `class_names` | names in the order of the labels, instead of those of the source |
| `only_present` | true: one chooses among the classes that occur in the split |
| `num_classes` | how many there must be |
| `reading` | one of `readings.READINGS`, for data sets of TFDS of another kind |
| `wordnet` | true: the source's classes are WordNet ids of ImageNet's |
| `opaque_labels` | true: the source's names of classes say nothing |
| `rename` | a JSON object beside the data, from names of folders to names of classes |
| `keep` | one whose keys are the classes that stay; others' images are left out |
| `imported_names` | what imported names of classes are called, if not as the task |
| `imported_templates` | what imported templates are called, if not as the task |
| `download` | what to get where the data are missing |
| `description` | for people |
"""

import pathlib
import re

from basic_tf import files
from basic_tf.evaluation import prompts, readings, task_metrics

_FOLDER = pathlib.Path(__file__).parent
FILES = (_FOLDER / "tasks.json", _FOLDER / "paper_tasks.json")
DEFAULT_TEMPLATES = "photos"
_KINDS = {
    "source": str,
    "training": str,
    "validation": str,
    "metric": str,
    "templates": (str, list),
    "class_names": list,
    "only_present": bool,
    "num_classes": int,
    "reading": str,
    "wordnet": bool,
    "opaque_labels": bool,
    "rename": str,
    "keep": str,
    "imported_names": str,
    "imported_templates": str,
    "download": str,
    "description": str,
}


def known_tasks(paths=()):
    """All tasks: ours, and those of more files.

    Args:
        paths: JSON files, or folders of some.

    Returns:
        `{name: {field: value}}`, with `metric` and `templates` filled in.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the file and the task, for another form or a name that is
            taken.
    """
    tasks = {}
    for path in [*FILES, *_files(paths)]:
        for name, task in read(path).items():
            if name in tasks:
                raise ValueError(f"{path}: there is a task {name!r} already")
            tasks[name] = task
    return tasks


def read(path):
    """The tasks of a file, as `known_tasks`."""
    content = files.read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not an object of a task for each name")
    for name, task in content.items():
        try:
            if not re.fullmatch(r"[\w.-]+", name):
                raise ValueError("a name of letters, digits and _ . - is needed")
            content[name] = _check(task)
        except ValueError as error:
            raise ValueError(f"{path}, task {name!r}: {error}") from None
    return content


def _files(paths):
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from sorted(path.glob("*.json"))
        else:
            yield path


def _check(task):
    """The task with defaults, or a `ValueError`."""
    if not isinstance(task, dict) or "source" not in task:
        raise ValueError("an object with a source is needed")
    for field, value in task.items():
        if field not in _KINDS:
            raise ValueError(f"no field {field!r}; there are {', '.join(_KINDS)}")
        # bool is an int in Python: true is no number of classes.
        if not isinstance(value, _KINDS[field]) or (
            isinstance(value, bool) and _KINDS[field] is not bool
        ):
            raise ValueError(f"{field} cannot be {value!r}")
    task = {"metric": "top1", "templates": DEFAULT_TEMPLATES} | task
    if task["metric"] not in task_metrics.METRICS:
        raise ValueError(
            f"no metric {task['metric']!r}; there are {', '.join(task_metrics.METRICS)}"
        )
    if task.get("reading") not in (None, *readings.READINGS):
        raise ValueError(
            f"no reading {task['reading']!r}; there are {', '.join(readings.READINGS)}"
        )
    if "reading" in task and not task["source"].startswith("tfds:"):
        raise ValueError("a reading is of a tfds: source")
    if (task["metric"] == task_metrics.MULTI_LABEL) != (task.get("reading") == "voc"):
        raise ValueError(f"{task_metrics.MULTI_LABEL} goes with the reading voc alone")
    templates(task)
    return task


def templates(task):
    """The texts of a task's templates.

    Raises:
        ValueError: as `prompts.load_templates`.
    """
    given = task["templates"]
    if isinstance(given, str):
        return prompts.load_templates(given)
    prompts.check_templates(given)
    return given
