"""A file for each evaluated task: `results/TASK.json`, with all that it depends on.

Beside it `TASK.npz` holds where the classes of each example stand, so that a report can
be written without the model.
"""

import hashlib
import importlib.metadata
import io
import json
import pathlib

import numpy as np

import basic_tf
from basic_tf import files
from basic_tf.evaluation import metrics, prompts, task_result, tasks

_VERSIONS = ("tensorflow", "keras", "tensorflow-datasets", "numpy", "scikit-learn")
_ARRAYS = ("top", "top_scores", "ranks", "scores")  # of a `metrics.Ranking`


def model_fingerprint(model):
    """SHA-256 of a model's variables, with their names and shapes, in hexadecimal."""
    digest = hashlib.sha256()
    for variable in model.variables:
        value = np.ascontiguousarray(variable.numpy())
        digest.update(f"{variable.path} {value.dtype} {value.shape}\n".encode())
        digest.update(value.data.cast("B") if value.size else b"")
    return digest.hexdigest()


def path_of(folder, name):
    """The file of a result: `serif:geometry` is in `serif.geometry.json`."""
    return pathlib.Path(folder) / f"{name.replace(':', '.')}.json"


def identity(name, fields, model_hash, image_size, prompt_sets=None, kind="zero_shot"):
    """What decides a result: two results of the same identity are the same.

    Args:
        name: of the task.
        fields: of the task, `task_files.known_tasks()[name]`.
        model_hash: from `model_fingerprint`.
        image_size: side in pixels of the images.
        prompt_sets: `prompt_sets.PromptSets` or None.
        kind: what is measured; see `evaluations`.

    Returns:
        A dictionary of JSON values.
    """
    imported = prompt_sets.class_names if prompt_sets else {}
    names = imported.get(fields.get("imported_names", name))
    return {
        "kind": kind,
        "task": fields,
        "templates_sha256": prompts.fingerprint(
            tasks.templates(name, fields, prompt_sets)
        ),
        "imported_class_names_sha256": names and prompts.fingerprint(names),
        "model_sha256": model_hash,
        "image_size": image_size,
    }


def find(folder, name, wanted):
    """The record of a task that was evaluated before.

    Args:
        folder: of the results.
        name: of the task.
        wanted: its `identity`.

    Returns:
        The content of `TASK.json`, or None if the task has not been evaluated.

    Raises:
        ValueError: if there is a result of another identity, with what differs.
    """
    path = path_of(folder, name)
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    differing = [key for key in wanted if record["inputs"].get(key) != wanted[key]]
    if differing:
        raise ValueError(
            f"{path} is of another {', '.join(differing)} and is not overwritten; "
            "give another --output, or move it"
        )
    return record


def write(folder, name, wanted, result, details):
    """Writes the result of a task; `TASK.json` comes last, and makes it count.

    Args:
        folder: of the results, made when missing.
        name: of the task.
        wanted: its `identity`.
        result: `TaskResult`.
        details: what else to record, a dictionary of JSON values.

    Returns:
        The content of `TASK.json`.
    """
    record = {
        "name": name,
        "metrics": result.metrics,
        "inputs": wanted,
        "class_names_sha256": prompts.fingerprint(result.class_names),
        **details,
        "class_names": result.class_names,
        "templates": result.templates,
        "left_out": [bad.key for bad in result.examples.bad],
        "versions": {
            "basic_tf": basic_tf.__version__,
            **{package: importlib.metadata.version(package) for package in _VERSIONS},
        },
    }
    path = path_of(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if result.ranking:
        arrays = {key: getattr(result.ranking, key) for key in _ARRAYS}
        content = io.BytesIO()
        np.savez_compressed(content, labels=result.labels, **arrays)
        files.write_whole(path.with_name(f"{path.stem}.npz"), content.getvalue())
    text = json.dumps(record, indent=2, ensure_ascii=False)
    files.write_whole(path, text)
    return record


def restore(folder, record, examples=None):
    """The result that `write` was given.

    Args:
        folder: of the results.
        record: from `find`.
        examples: `sources.Examples` that were evaluated, or None.

    Raises:
        ValueError: if there are not as many examples as there were.
    """
    name, found = record["name"], record["metrics"]
    if examples is not None and len(examples) != found["num_examples"]:
        raise ValueError(
            f"{name}: there are {len(examples)} examples and "
            f"{found['num_examples']} were evaluated: the data have changed"
        )
    path = path_of(folder, name)
    path = path.with_name(f"{path.stem}.npz")
    ranking = labels = None
    if path.is_file():
        with np.load(path) as arrays:
            labels = arrays["labels"]
            ranking = metrics.Ranking(
                **{key: arrays[key] for key in _ARRAYS},
                num_classes=found["num_classes"],
            )
    return task_result.TaskResult(
        record["inputs"]["kind"],
        found,
        examples,
        ranking,
        labels,
        record["class_names"],
        record["templates"],
    )
