"""Losses as functions of tensors: contrastive, NT-Xent and multi-label softmax.

The contrastive loss of a pair (BASIC section 3) is written over its negatives: with `s`
its own logit and `S` the log-sum-exp of its negatives' logits, `logsumexp(s, S) - s =
softplus(S - s)`, which keeps its digits where the pair is told apart already (ours).
"""

import keras
from keras import ops

NO_NEGATIVE = -1e30  # a logit that no sum notices; finite, so that differences are, too


def contrastive_loss(image_embeddings, text_embeddings, log_scale, caption_ids=None):
    """Symmetric contrastive loss of B pairs, the mean of both directions.

    Row i of either direction classifies the partner of i among the B candidates.
    Two equal captions in a batch are candidates of each other's images, and no model
    can tell them apart: a pair whose caption occurs m times in the batch costs at least
    `ln m` image to text. `caption_ids` can take such candidates out of the sums.

    Holds `[B, B]` logits: the readable form, and the faster one up to B of some
    thousands. `streaming_loss` does without.

    Args:
        image_embeddings: `[B, D]` unit vectors, cast to float32 at least.
        text_embeddings: `[B, D]` unit vectors.
        log_scale: scalar `t`; logits are `exp(t) * cosine`.
        caption_ids: `[B]` int or None; pairs of equal ids are not negatives of each
            other.

    Returns:
        `(loss, accuracy)`: the mean loss in nats, and the mean over both directions of
        how often the partner scores above all negatives. A collapsed model costs `ln B`
        and is never right. Source: BASIC section 3, eqs. 1-3.
    """
    images, texts, log_scale = map(
        _at_least_float32, (image_embeddings, text_embeddings, log_scale)
    )
    logits = ops.matmul(images, ops.transpose(texts)) * ops.exp(log_scale)
    pair = ops.arange(ops.shape(logits)[0])
    own = same = ops.equal(pair[:, None], pair[None, :])
    positives = ops.sum(ops.where(own, logits, 0.0), axis=1)
    if caption_ids is not None:
        caption_ids = ops.convert_to_tensor(caption_ids)
        same = ops.equal(caption_ids[:, None], caption_ids[None, :])
    negatives = ops.where(same, NO_NEGATIVE, logits)
    pair_losses, hits = [], []
    for axis in (1, 0):  # image to text, text to image
        pair_losses.append(ops.softplus(ops.logsumexp(negatives, axis) - positives))
        hits.append(ops.max(negatives, axis) < positives)
    accuracy = ops.mean(ops.cast(ops.stack(hits), "float32"))
    return ops.mean(ops.stack(pair_losses)), accuracy


def nt_xent_loss(embeddings, temperature):
    """NT-Xent, SimCLR's loss, of two views each of N images.

    A view classifies the other view of its image among the 2N - 1 views besides itself.
    It is not among its own candidates: nothing is as near to it.

    Holds `[2N, 2N]` logits, as `contrastive_loss` does; `streaming_nt_xent_loss` does
    without.

    Args:
        embeddings: `[2N, D]` unit vectors, cast to float32 at least; rows 2k and 2k + 1
            are the views of image k.
        temperature: float, tau; logits are `cosine / tau`.

    Returns:
        `(loss, accuracy)`: the mean over the 2N views in nats, and how often the other
        view of the image scores above all other candidates. A collapsed model costs
        `ln(2N - 1)`. Source: SimCLR eq. 1 and algorithm 1.
    """
    embeddings = _at_least_float32(embeddings)
    logits = ops.matmul(embeddings, ops.transpose(embeddings)) / temperature
    image = ops.arange(ops.shape(logits)[0]) // 2
    same = ops.equal(image[:, None], image[None, :])
    itself = ops.eye(ops.shape(logits)[0], dtype="bool")
    positives = ops.sum(ops.where(same & ~itself, logits, 0.0), axis=1)
    negatives = ops.where(same, NO_NEGATIVE, logits)
    losses = ops.softplus(ops.logsumexp(negatives, axis=1) - positives)
    hits = ops.max(negatives, axis=1) < positives
    return ops.mean(losses), ops.mean(ops.cast(hits, "float32"))


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


def _at_least_float32(value):
    value = ops.convert_to_tensor(value)
    return ops.cast(value, keras.backend.result_type(value.dtype, "float32"))
