"""The linear probe of a task, on the embeddings that zero-shot classification takes."""

import numpy as np

from basic_tf.evaluation import linear_probe, metrics, task_metrics, task_result, tasks

KIND = "linear_probe"
VALIDATION_SHARE = 5  # one in so many, where a task has no validation source
SEED = 0  # of which those are


def evaluate(embedder, name, task, data_dir=None):
    """Fits the probe on a task's training images and scores its own.

    Args:
        embedder: `embedder.Embedder`.
        name: of the task.
        task: its fields; `training` is needed.
        data_dir: folder of the data.

    Returns:
        `TaskResult`; beside the task's metrics `"lambda"`, `"converged"`,
        `"num_training"` and `"num_validation"`.

    Raises:
        ValueError: for a class of the task that no training image has, and as
            `tasks.load_checked`, `linear_probe.evaluate` and the metric of the task.
    """
    examples, features, labels = _read(embedder, name, task, data_dir)
    training = _read(embedder, name, task | {"source": task["training"]}, data_dir)
    if "validation" in task:
        source = {"source": task["validation"]}
        held_out = _read(embedder, name, task | source, data_dir)[1:]
        training = training[1:]
    else:
        training, held_out = _split(*training[1:])
    classes = np.unique(training[1])
    unknown = sorted({*labels, *held_out[1]} - {*classes})
    if unknown:
        raise ValueError(f"{name}: no training image has the class {str(unknown[0])!r}")
    numbered = [
        (rows, np.searchsorted(classes, names)) for rows, names in (training, held_out)
    ]
    labels = np.searchsorted(classes, labels)
    found = linear_probe.evaluate(*numbered, features, len(classes))
    ranking = metrics.rank(labels, found.scores.__getitem__, len(classes))
    measured = task_metrics.single_label(task["metric"], labels, ranking) | {
        "lambda": found.strength,
        "converged": found.converged,
        "num_training": len(training[1]),
        "num_validation": len(held_out[1]),
    }
    return task_result.TaskResult(
        KIND, measured, examples, ranking, labels, classes.tolist()
    )


def _read(embedder, name, task, data_dir):
    """Examples, their embeddings, and the names of their classes, `[N]`."""
    examples = tasks.load_checked(name, task, data_dir)
    labels, names = tasks.labels_of(name, task, examples)
    embeddings = embedder.images(examples, task["source"], name)
    return examples, embeddings, np.array(names)[labels]


def _split(features, names):
    """Training and validation examples."""
    order = np.random.default_rng(SEED).permutation(len(names))
    size = max(1, len(names) // VALIDATION_SHARE)
    return [(features[rows], names[rows]) for rows in (order[size:], order[:size])]
