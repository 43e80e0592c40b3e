"""The contrastive loss of a large batch, a block of images at a time."""

import dataclasses

import tensorflow as tf

from basic_tf import slices
from basic_tf.losses import NO_NEGATIVE
from basic_tf.replicas import ONE_REPLICA

BLOCK_ELEMENTS = 2**22  # logits of a block, 16 MB; some blocks are held at a time


def streaming_contrastive_loss(
    image_embeddings,
    text_embeddings,
    log_scale,
    caption_ids=None,
    block_images=None,
    replicas=ONE_REPLICA,
):
    """`contrastive_loss` that holds the logits of a block at a time, not `[B, B]`.

    Two sweeps over blocks of all texts by some images: the first keeps the log-sum-exp
    of each image and, running, of each text; the second, run only for gradients, makes
    the logits again and from them the gradients in closed form. Four matrix products in
    all, where the dense form has three. Sums are float32, whatever the embeddings are;
    logits are as exact as the device's matrix product.

    Args:
        image_embeddings: `[n, D]` unit vectors, of this replica alone and of a static
            shape; B = R n.
        text_embeddings: `[n, D]` unit vectors.
        log_scale: scalar `t`.
        caption_ids: `[n]` int or None, see `contrastive_loss`.
        block_images: images of a block, which must divide n; by default the largest
            divisor that `BLOCK_ELEMENTS` allow, so n should not be prime.
        replicas: `Replicas`. Each takes its own images against all texts.

    Returns:
        `(loss, accuracy)` of all B pairs, as `contrastive_loss`. The gradients are of
        the loss of all pairs; that by `log_scale` is this replica's share, which sums
        to the whole one over the replicas.

    Raises:
        ValueError: if `block_images` does not divide n.
    """

    @tf.custom_gradient
    def compute(images, texts, log_scale):
        sweep = _Sweep(images, texts, log_scale, caption_ids, block_images, replicas)
        sums = sweep.sums()

        def gradient(by_loss, by_accuracy):
            return [by_loss * gradient for gradient in sweep.gradients(sums)]

        return (sums.loss, sums.accuracy), gradient

    return compute(
        tf.cast(image_embeddings, tf.float32),
        tf.cast(text_embeddings, tf.float32),
        tf.cast(log_scale, tf.float32),
    )


@dataclasses.dataclass(frozen=True)
class _Sums:
    """What the first sweep leaves: the loss, and what the second one needs.

    `image_total [n]` and `text_total [B]` are log-sum-exps with the pair's own logit;
    `pull [n]` is how far a pair is from certain, summed over both directions.
    """

    loss: tf.Tensor
    accuracy: tf.Tensor
    image_total: tf.Tensor
    text_total: tf.Tensor
    pull: tf.Tensor


class _Sweep:
    """Sweeps over the logits `[B, n]` of all texts by this replica's images.

    A block is `[B, m]`: matrix products of tall matrices are twice as fast on CPUs as
    those of wide ones.
    """

    def __init__(self, images, texts, log_scale, caption_ids, block_images, replicas):
        self.images, self.replicas = images, replicas
        self.num_images, self.dim = images.shape
        self.batch_size = self.num_images * replicas.count
        self.texts = self._gather(texts)
        self.scale = tf.exp(log_scale)
        self.first_image = replicas.index * self.num_images
        self.caption_ids = caption_ids
        if caption_ids is not None:
            self.caption_ids = tf.convert_to_tensor(caption_ids)
            self.all_caption_ids = self._gather(self.caption_ids)
        self.block_images = choose_block(
            "images", block_images, self.num_images, self.batch_size
        )
        self.num_blocks = self.num_images // self.block_images

    def sums(self):
        """First sweep: `_Sums`."""

        def body(block, images, text_max, text_sum):
            positives, negatives = self._logits(block)
            image_max = tf.reduce_max(negatives, 0)
            image_sum = tf.reduce_sum(tf.exp(negatives - image_max), 0)
            new_max = tf.maximum(text_max, tf.reduce_max(negatives, 1))
            text_sum *= tf.exp(text_max - new_max)
            text_sum += tf.reduce_sum(tf.exp(negatives - new_max[:, tf.newaxis]), 1)
            image_sum = image_max + tf.math.log(image_sum)
            of_images = tf.stack([positives, image_max, image_sum], 1)
            return block + 1, images.write(block, of_images), new_max, text_sum

        images = tf.TensorArray(
            tf.float32, self.num_blocks, element_shape=(self.block_images, 3)
        )
        texts = (self.batch_size,)
        images, text_max, text_sum = slices.repeat(
            self.num_blocks, body, images, tf.fill(texts, NO_NEGATIVE), tf.zeros(texts)
        )
        positives, image_max, image_sum = tf.unstack(
            tf.ensure_shape(images.concat(), (self.num_images, 3)), axis=1
        )
        text_sum = text_max + tf.math.log(text_sum)
        text_max, text_sum = self._over_replicas(text_max, text_sum)
        margins = tf.stack([image_sum, self._own(text_sum)]) - positives
        hits = tf.stack([image_max, self._own(text_max)]) < positives
        all_positives = self._gather(positives)
        return _Sums(
            loss=self._mean(tf.nn.softplus(margins)),
            accuracy=self._mean(tf.cast(hits, tf.float32)),
            image_total=positives + tf.nn.softplus(image_sum - positives),
            text_total=all_positives + tf.nn.softplus(text_sum - all_positives),
            pull=tf.reduce_sum(tf.sigmoid(margins), 0),
        )

    def gradients(self, sums):
        """Second sweep: gradients by images `[n, D]`, texts `[n, D]` and `t`."""

        def body(block, by_images, by_texts):
            _, negatives = self._logits(block)
            push = tf.exp(negatives - self._block(sums.image_total, block))
            push += tf.exp(negatives - sums.text_total[:, tf.newaxis])
            by_image = tf.matmul(push, self.texts, transpose_a=True)
            by_texts += tf.matmul(push, self._block(self.images, block))
            return block + 1, by_images.write(block, by_image), by_texts

        by_images = tf.TensorArray(
            tf.float32, self.num_blocks, element_shape=(self.block_images, self.dim)
        )
        by_images, by_texts = slices.repeat(
            self.num_blocks, body, by_images, tf.zeros((self.batch_size, self.dim))
        )
        by_images = tf.ensure_shape(by_images.concat(), (self.num_images, self.dim))
        by_texts = self._own(self.replicas.total(by_texts))
        pull = sums.pull[:, tf.newaxis]
        weight = self.scale / (2 * self.batch_size)
        by_images = weight * (by_images - pull * self._own(self.texts))
        by_texts = weight * (by_texts - pull * self.images)
        # logits = exp(t) x.y: the gradient by t is that by x along x.
        return by_images, by_texts, tf.reduce_sum(self.images * by_images)

    def _logits(self, block):
        """Logits of a block: of its pairs, `[m]`, and its negatives, `[B, m]`."""
        images = self._block(self.images, block)
        logits = tf.matmul(self.texts, images * self.scale, transpose_b=True)
        columns = tf.range(self.block_images)
        own = self.first_image + block * self.block_images + columns
        indices = tf.stack([own, columns], axis=1)
        positives = tf.gather_nd(logits, indices)
        if self.caption_ids is None:
            nothing = tf.fill((self.block_images,), NO_NEGATIVE)
            return positives, tf.tensor_scatter_nd_update(logits, indices, nothing)
        same = tf.equal(
            self.all_caption_ids[:, tf.newaxis], self._block(self.caption_ids, block)
        )
        return positives, tf.where(same, NO_NEGATIVE, logits)

    def _block(self, values, block):
        return slices.take(values, block, self.block_images)

    def _own(self, texts):
        """This replica's part `[n, ...]` of something `[B, ...]`."""
        size = [self.num_images, *texts.shape[1:]]
        return tf.slice(texts, [self.first_image] + [0] * (len(size) - 1), size)

    def _gather(self, own):
        """`[n, ...]` of each replica -> `[B, ...]`, of a static shape."""
        every = self.replicas.gather(own)
        return tf.ensure_shape(every, (self.batch_size, *own.shape[1:]))

    def _over_replicas(self, text_max, text_sum):
        """Largest and log-sum-exp of each text over the images of all replicas."""
        if self.replicas.count == 1:
            return text_max, text_sum
        text_max = self.replicas.gather(text_max[tf.newaxis])
        text_sum = self.replicas.gather(text_sum[tf.newaxis])
        return tf.reduce_max(text_max, 0), tf.reduce_logsumexp(text_sum, 0)

    def _mean(self, values):
        """Mean over both directions and all pairs of something `[2, n]`."""
        return self.replicas.total(tf.reduce_sum(values)) / (2 * self.batch_size)


def choose_block(name, size, count, num_candidates):
    """How many rows of logits are made at a time.

    Args:
        name: of what a row is of, for the message.
        size: asked for; None for the largest divisor that `BLOCK_ELEMENTS` allow.
        count: of all rows.
        num_candidates: length of a row.

    Raises:
        ValueError: if `size` does not divide `count`.
    """
    size = size or slices.largest_divisor(count, BLOCK_ELEMENTS // num_candidates)
    if count % size:
        raise ValueError(
            f"block_{name} {size} does not divide the {count} {name}; use one of "
            f"{slices.nearest(slices.divisors(count), size)}"
        )
    return size
