"""Losses as functions of tensors: contrastive and multi-label softmax."""

import tensorflow as tf
from keras import ops


def contrastive_loss(image_embeddings, text_embeddings, log_scale, excluded=None):
    """Symmetric contrastive loss of B pairs, the mean of both directions.

    Row i of either direction classifies the partner of i among the B candidates.
    Two equal captions in a batch are candidates of each other's images, and no model
    can tell them apart: a pair whose caption occurs m times in the batch costs at least
    `ln m` image to text. `excluded` can take such candidates out of the sums.

    Args:
        image_embeddings: `[B, D]` float32 unit vectors.
        text_embeddings: `[B, D]` float32 unit vectors.
        log_scale: scalar `t`; logits are `exp(t) * cosine`.
        excluded: `[B, B]` bool or None; true where text j is not to count as a negative
            of image i, nor image i of text j. The diagonal must be false.

    Returns:
        `(loss, accuracy)`: the mean loss in nats, and the mean over both directions of
        how often the partner scores highest. A collapsed model costs `ln B`.
        Source: BASIC section 3, eqs. 1-3.
    """
    similarities = ops.matmul(image_embeddings, ops.transpose(text_embeddings))
    logits = similarities * ops.exp(log_scale)
    if excluded is not None:
        logits = ops.where(excluded, -1e30, logits)
    positives = ops.diagonal(logits)
    row_loss = ops.logsumexp(logits, axis=1) - positives
    column_loss = ops.logsumexp(logits, axis=0) - positives
    loss = ops.mean(row_loss + column_loss) / 2
    partners = ops.arange(ops.shape(logits)[0])
    hits = [ops.equal(ops.argmax(logits, axis=axis), partners) for axis in (0, 1)]
    return loss, ops.mean(ops.cast(ops.stack(hits), "float32"))


def equal_captions(token_ids):
    """Where two different rows of a batch hold the same caption.

    Args:
        token_ids: `[B, L]` int.

    Returns:
        `[B, B]` bool, false on the diagonal.
    """
    same = tf.reduce_all(token_ids[:, tf.newaxis] == token_ids[tf.newaxis], axis=-1)
    return tf.linalg.set_diag(same, tf.zeros_like(token_ids[:, 0], tf.bool))


def multi_label_softmax_loss(labels, logits):
    """Softmax cross-entropy where an example may carry several labels.

    The target distribution is an example's row of `labels`, scaled to a sum of one
    (BASIC section 7.1).

    Args:
        labels: `[B, C]` multi-hot or weights of at least 0; a row of zeros costs
            nothing.
        logits: `[B, C]` float.

    Returns:
        The mean loss in nats.
    """
    logits = ops.cast(logits, "float32")
    labels = ops.cast(labels, "float32")
    total = ops.sum(labels, axis=-1, keepdims=True)
    targets = labels / ops.where(total > 0, total, 1.0)
    # TensorFlow's fused cross-entropy has a gradient where a row's targets are all 0.
    return -ops.mean(ops.sum(targets * ops.log_softmax(logits), axis=-1))
