"""Embeddings of whole sets of images."""

import numpy as np
import tensorflow as tf

from basic_tf.data import batches
from basic_tf.evaluation import progress


def embed_images(model, examples, image_size, batch_size=256, title="images"):
    """Embeds all images in their order, each once.

    Args:
        model: `DualEncoder`; its statistics stay as they are.
        examples: `sources.Examples`.
        image_size: side in pixels of the images that the model takes.
        batch_size: images at a time.
        title: what to call them where progress is shown.

    Returns:
        `[N, D]` float32 unit vectors.
    """
    encode = tf.function(
        model.encode_image, reduce_retracing=True, jit_compile=False, autograph=False
    )
    dataset = batches.evaluation_batches(examples, image_size, batch_size)
    shown, parts, done = progress.Progress(title, len(examples)), [], 0
    for images in dataset:
        parts.append(encode(images).numpy())
        done += len(images)
        shown.update(done)
    shown.close()
    return np.concatenate(parts)
