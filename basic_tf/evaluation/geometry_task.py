"""The geometry of a task's pairs: its images, each with the first of its captions."""

import numpy as np

from basic_tf.evaluation import geometry, task_result

KIND = "geometry"


def evaluate(embedder, name, source, examples):
    """Measures the pairs of a split.

    Args:
        embedder: `embedder.Embedder`.
        name: of the task.
        source: of the examples.
        examples: `sources.Examples`.

    Returns:
        `TaskResult` with the metrics of `geometry.measure`.

    Raises:
        ValueError: as `geometry.measure`.
    """
    images, texts, image_of_text = embedder.pairs(examples, source, name)
    _, first = np.unique(image_of_text, return_index=True)
    found = geometry.measure(images, texts[first])
    return task_result.TaskResult(KIND, found, examples)
