"""Zero-shot classification by names and prompts (BASIC section 3, CLIP 3.1.4)."""

import tensorflow as tf

from basic_tf.evaluation import metrics, prompts, task_metrics, task_result
from basic_tf.models import dual_encoder

KIND = "zero_shot"
SHOWN = ("top1", "top5", "mean_per_class_recall")  # of its metrics, in a line


def classifier(encode_text, class_names, templates):
    """Zero-shot classifier weights: normalise each prompt, average, normalise again.

    Args:
        encode_text: string tensor `[C]` -> `[C, D]` unit vectors.
        class_names: C names, a list or a string tensor.
        templates: texts with one slot.

    Returns:
        Tensor `[C, D]`, float32 unit vectors.

    Raises:
        ValueError: for a template without exactly one slot, or no class.
    """
    prompts.check_templates(templates)
    class_names = tf.convert_to_tensor(class_names, tf.string)
    if class_names.shape[0] == 0:
        raise ValueError("no class name to choose from")
    # One after another: of 80 templates of 10,000 classes all would take gigabytes.
    total = encode_text(prompts.fill(templates[0], class_names))
    for template in templates[1:]:
        total += encode_text(prompts.fill(template, class_names))
    return dual_encoder.normalize(total / len(templates))


def evaluate(embedder, task):
    """Classifies every example of a task once.

    Args:
        embedder: `embedder.Embedder`.
        task: `tasks.Task` of classification.

    Returns:
        `TaskResult`.

    Raises:
        ValueError: as the metric of the task.
    """
    weights = classifier(embedder.texts, task.class_names, task.templates).numpy()
    embeddings = embedder.images(task.examples, task.source, task.name)
    return classify(task, embeddings, weights)


def classify(task, embeddings, weights):
    """The result of a task from the embeddings of its images.

    Args:
        task: `tasks.Task` of classification.
        embeddings: `[N, D]` float32 unit vectors.
        weights: `[C, D]`, from `classifier`.

    Returns:
        `TaskResult`; cosines are computed for some images at a time, so that memory
        does not grow with N times C.

    Raises:
        ValueError: as `task_metrics.single_label` and `task_metrics.multi_label`.
    """
    if task.metric == task_metrics.MULTI_LABEL:
        found = task_metrics.multi_label(task.targets, embeddings @ weights.T)
        ranking = None
    else:
        ranking = metrics.rank(
            task.labels, lambda rows: embeddings[rows] @ weights.T, len(weights)
        )
        found = task_metrics.single_label(task.metric, task.labels, ranking)
    return task_result.TaskResult(
        KIND,
        found,
        task.examples,
        ranking,
        task.labels,
        task.class_names,
        task.templates,
    )
