"""Templates and class names by task, as data in CLIP_benchmark's form.

A folder with `templates.json`, `{task: [templates]}`, and `class_names.json`,
`{task: [names in the order of the labels]}`; either may be missing.
"""

import dataclasses
import json
import pathlib

from basic_tf import files
from basic_tf.evaluation import prompts

TEMPLATES, CLASS_NAMES = "templates.json", "class_names.json"


@dataclasses.dataclass(frozen=True)
class PromptSets:
    """Prompts of many tasks.

    Attributes:
        templates: `{task: [texts with one slot]}`.
        class_names: `{task: [C names, in the order of the labels]}`.
    """

    templates: dict = dataclasses.field(default_factory=dict)
    class_names: dict = dataclasses.field(default_factory=dict)

    def union(self, other):
        """Both; of a task in both, what `other` has."""
        return PromptSets(
            self.templates | other.templates, self.class_names | other.class_names
        )


def read(folder):
    """Reads a folder.

    Raises:
        FileNotFoundError: if it has neither file.
        ValueError: as `read_templates`.
    """
    folder = pathlib.Path(folder)
    if not any((folder / name).is_file() for name in (TEMPLATES, CLASS_NAMES)):
        raise FileNotFoundError(
            f"{folder} has neither {TEMPLATES} nor {CLASS_NAMES}; "
            "tools.import_prompts writes them"
        )
    return PromptSets(
        read_templates(folder / TEMPLATES) if (folder / TEMPLATES).is_file() else {},
        read_names(folder / CLASS_NAMES) if (folder / CLASS_NAMES).is_file() else {},
    )


def write(folder, sets):
    """Writes a folder, made when missing; the tasks that it holds stay.

    Returns:
        The `PromptSets` that it holds now.
    """
    folder = pathlib.Path(folder)
    there = [(folder / name).is_file() for name in (TEMPLATES, CLASS_NAMES)]
    sets = read(folder).union(sets) if any(there) else sets
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        (TEMPLATES, sets.templates),
        (CLASS_NAMES, sets.class_names),
    ):
        text = json.dumps(content, indent=2, ensure_ascii=False)
        files.write_whole(folder / name, f"{text}\n")
    return sets


def read_templates(path):
    """`{task: [templates]}` of a JSON file.

    Raises:
        ValueError: naming the file and the task, if it has another form or a template
            has not exactly one slot.
    """
    content = _read_lists(path)
    for task, templates in content.items():
        try:
            prompts.check_templates(templates)
        except ValueError as error:
            raise ValueError(f"{path}, {task}: {error}") from None
    return content


def read_names(path):
    """`{task: [class names]}` of a JSON file.

    Raises:
        ValueError: naming the file and the task, if it has another form.
    """
    return _read_lists(path)


def _read_lists(path):
    content = files.read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not an object of a list of texts for each task")
    for task, texts in content.items():
        is_list = isinstance(texts, list) and texts
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{path}, {task}: not a list of texts")
    return content
