"""Zero-shot classification by names and prompts (BASIC section 3, CLIP 3.1.4)."""

import dataclasses

import numpy as np
import tensorflow as tf

from basic_tf.data import sources
from basic_tf.evaluation import features, metrics, prompts
from basic_tf.models import dual_encoder


@dataclasses.dataclass(frozen=True)
class ZeroShotResult:
    """Outcome of a task.

    Attributes:
        metrics: see `metrics.classification_metrics`.
        similarities: `[N, C]` float32 cosines.
        labels: `[N]` int.
        class_names: C names.
        examples: `sources.Examples` that were classified.
    """

    metrics: dict
    similarities: np.ndarray
    labels: np.ndarray
    class_names: list
    examples: sources.Examples


def classifier(encode_text, class_names, templates):
    """Zero-shot classifier weights: normalise each prompt, average, normalise again.

    Args:
        encode_text: string tensor `[C]` -> `[C, D]` unit vectors.
        class_names: C names, a list or a string tensor.
        templates: texts with one slot `{}`.

    Returns:
        Tensor `[C, D]`, float32 unit vectors.

    Raises:
        ValueError: for a template without exactly one slot, or no class.
    """
    prompts.check_templates(templates)
    class_names = tf.convert_to_tensor(class_names, tf.string)
    if class_names.shape[0] == 0:
        raise ValueError("no class name to choose from")
    embeddings = [
        encode_text(prompts.fill(template, class_names)) for template in templates
    ]
    return dual_encoder.normalize(tf.reduce_mean(tf.stack(embeddings), axis=0))


def evaluate(run, task, batch_size=256):
    """Classifies every example of a task once.

    Args:
        run: `loaded_run.LoadedRun`; only its model, tokenizer and image size are used.
        task: `tasks.Task`.
        batch_size: images at a time; the result does not depend on it.

    Returns:
        `ZeroShotResult`.
    """

    def encode_text(texts):
        return run.model.encode_text(run.tokenizer(texts))

    weights = classifier(encode_text, task.class_names, task.templates).numpy()
    embeddings = features.embed_images(
        run.model, task.examples, run.image_size, batch_size
    )
    similarities = embeddings @ weights.T
    return ZeroShotResult(
        metrics.classification_metrics(task.labels, similarities),
        similarities,
        task.labels,
        task.class_names,
        task.examples,
    )
