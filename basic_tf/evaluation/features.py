"""Embeddings of whole sets of images."""

import numpy as np
import tensorflow as tf

from basic_tf.data import batches


def embed_images(model, examples, image_size, batch_size=256):
    """Embeds all images in their order, each once.

    Args:
        model: `DualEncoder`; its statistics stay as they are.
        examples: `sources.Examples`.
        image_size: side in pixels of the images that the model takes.
        batch_size: images at a time, at most.

    Returns:
        `[N, D]` float32 unit vectors.
    """
    encode = tf.function(model.encode_image, jit_compile=False, autograph=False)
    dataset = batches.evaluation_batches(examples, image_size, batch_size)
    rows = [tf.boolean_mask(encode(images), mask) for images, mask in dataset]
    return np.concatenate(rows)
