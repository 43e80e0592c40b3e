"""Zero-shot classification by names and prompts (BASIC section 3, CLIP 3.1.4)."""

import dataclasses

import numpy as np
import tensorflow as tf

from basic_tf.data import sources
from basic_tf.evaluation import features, metrics, prompts, task_metrics
from basic_tf.models import dual_encoder

MAX_TEXTS = 512  # that are encoded at a time


@dataclasses.dataclass(frozen=True)
class ZeroShotResult:
    """Outcome of a task.

    Attributes:
        metrics: see `task_metrics`.
        ranking: `metrics.Ranking` of cosines; None for a task with several labels.
        labels: `[N]` int, or None.
        class_names: C names.
        examples: `sources.Examples` that were classified.
    """

    metrics: dict
    ranking: metrics.Ranking | None
    labels: np.ndarray | None
    class_names: list
    examples: sources.Examples


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


def evaluate(run, task, batch_size=256):
    """Classifies every example of a task once.

    Args:
        run: `loaded_run.LoadedRun`; only its model, tokenizer and image size are used.
        task: `tasks.Task` of classification.
        batch_size: images at a time; the result does not depend on it.

    Returns:
        `ZeroShotResult`.

    Raises:
        ValueError: as the metric of the task.
    """
    weights = classifier(text_encoder(run), task.class_names, task.templates).numpy()
    embeddings = features.embed_images(
        run.model, task.examples, run.image_size, batch_size, task.name
    )
    return classify(task, embeddings, weights)


def text_encoder(run):
    """A function from texts, string `[C]`, to unit vectors `[C, D]`, some at a time."""
    encode = tf.function(
        run.model.encode_text, reduce_retracing=True, jit_compile=False, autograph=False
    )

    def encode_text(texts):
        starts = range(0, len(texts), MAX_TEXTS)
        parts = [encode(run.tokenizer(texts[s : s + MAX_TEXTS])) for s in starts]
        return tf.concat(parts, axis=0)

    return encode_text


def classify(task, embeddings, weights):
    """The result of a task from the embeddings of its images.

    Args:
        task: `tasks.Task` of classification.
        embeddings: `[N, D]` float32 unit vectors.
        weights: `[C, D]`, from `classifier`.

    Returns:
        `ZeroShotResult`; cosines are computed for some images at a time, so that
        memory does not grow with N times C.

    Raises:
        ValueError: as `task_metrics.single_label` and `task_metrics.multi_label`.
    """
    if task.metric == task_metrics.MULTI_LABEL:
        found = task_metrics.multi_label(task.targets, embeddings @ weights.T)
        return ZeroShotResult(found, None, None, task.class_names, task.examples)
    ranking = metrics.rank(
        task.labels, lambda rows: embeddings[rows] @ weights.T, len(weights)
    )
    found = task_metrics.single_label(task.metric, task.labels, ranking)
    return ZeroShotResult(found, ranking, task.labels, task.class_names, task.examples)
