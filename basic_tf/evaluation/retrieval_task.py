"""Retrieval on a task's images and all their captions."""

from basic_tf.evaluation import retrieval, task_metrics, task_result

KIND = "retrieval"


def evaluate(embedder, task):
    """Recall both ways.

    Args:
        embedder: `embedder.Embedder`.
        task: `tasks.Task`; a caption of one of its examples finds that one alone.

    Returns:
        `TaskResult` with the metrics of `retrieval.measure`; the main one is the mean
        of both ways' R@1.

    Raises:
        ValueError: as `retrieval.measure`.
    """
    pairs = embedder.pairs(task.examples, task.source, task.name)
    found = retrieval.measure(*pairs)
    mean = (found["image_to_text_r1"] + found["text_to_image_r1"]) / 2
    found |= {"metric": task_metrics.RETRIEVAL, "value": mean}
    return task_result.TaskResult(KIND, found, task.examples)
