"""The contrastive loss of a large batch, a block of rows at a time."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from basic_tf.losses import NO_NEGATIVE

BLOCK_ELEMENTS = 2**24  # logits held at a time, 64 MB


def _itself(tensor):
    return tensor


@dataclasses.dataclass(frozen=True)
class Replicas:
    """What a loss over all replicas needs of them; as it stands, a single one.

    Attributes:
        count: R.
        index: which of them this is, int or int32 scalar.
        gather: `[n, ...]` of each replica -> `[R * n, ...]` on all.
        total: sum over the replicas, on all.
    """

    count: int = 1
    index: int = 0
    gather: Callable = _itself
    total: Callable = _itself


def streaming_contrastive_loss(
    image_embeddings,
    text_embeddings,
    log_scale,
    caption_ids=None,
    block_rows=None,
    replicas=Replicas(),
):
    """`contrastive_loss` that never holds `[B, B]` logits.

    Two sweeps over blocks of rows against all columns: the first keeps the log-sum-exp
    of each row and, running, of each column; the second, run only for gradients, makes
    the logits again and from them the gradients in closed form. Four matrix products in
    all, where the dense form has three. Float32 inside, whatever the embeddings are.

    Args:
        image_embeddings: `[n, D]` unit vectors, of this replica alone; B = R n.
        text_embeddings: `[n, D]` unit vectors.
        log_scale: scalar `t`.
        caption_ids: `[n]` int or None, see `contrastive_loss`.
        block_rows: rows of a block, which must divide n; by default as many as
            `BLOCK_ELEMENTS` allow.
        replicas: `Replicas`. Each computes the rows of its own images.

    Returns:
        `(loss, accuracy)` of all B pairs, as `contrastive_loss`. The gradients are of
        the loss of all pairs; that by `log_scale` is this replica's share, which sums
        to the whole one over the replicas.

    Raises:
        ValueError: if `block_rows` does not divide n.
    """

    @tf.custom_gradient
    def compute(images, texts, log_scale):
        sweep = _Sweep(images, texts, log_scale, caption_ids, block_rows, replicas)
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

    `row_total [n]` and `column_total [B]` are log-sum-exps with the pair's own logit;
    `pull [n]` is how far a pair is from certain, summed over both directions.
    """

    loss: tf.Tensor
    accuracy: tf.Tensor
    row_total: tf.Tensor
    column_total: tf.Tensor
    pull: tf.Tensor


class _Sweep:
    """Sweeps over the logits `[n, B]` of this replica's images, a block at a time."""

    def __init__(self, images, texts, log_scale, caption_ids, block_rows, replicas):
        self.images, self.replicas = images, replicas
        self.num_rows, self.dim = images.shape
        self.texts = replicas.gather(texts)
        self.batch_size = self.num_rows * replicas.count
        self.scale = tf.exp(log_scale)
        self.first_row = replicas.index * self.num_rows
        self.caption_ids = caption_ids
        if caption_ids is not None:
            self.all_caption_ids = replicas.gather(caption_ids)
        self.block_rows = block_rows or largest_divisor(
            self.num_rows, BLOCK_ELEMENTS // self.batch_size
        )
        if self.num_rows % self.block_rows:
            raise ValueError(
                f"block_rows {self.block_rows} does not divide the {self.num_rows} rows"
            )
        self.num_blocks = self.num_rows // self.block_rows

    def sums(self):
        """First sweep: `_Sums`."""

        def body(block, rows, column_max, column_sum):
            positives, negatives = self._logits(block)
            row_max = tf.reduce_max(negatives, 1)
            shifted = tf.exp(negatives - row_max[:, tf.newaxis])
            row_sum = row_max + tf.math.log(tf.reduce_sum(shifted, 1))
            new_max = tf.maximum(column_max, tf.reduce_max(negatives, 0))
            column_sum = column_sum * tf.exp(column_max - new_max)
            column_sum += tf.reduce_sum(tf.exp(negatives - new_max), 0)
            rows = rows.write(block, tf.stack([positives, row_max, row_sum], 1))
            return block + 1, rows, new_max, column_sum

        rows = tf.TensorArray(
            tf.float32, self.num_blocks, element_shape=(self.block_rows, 3)
        )
        columns = (self.batch_size,)
        _, rows, column_max, column_sum = self._loop(
            body, rows, tf.fill(columns, NO_NEGATIVE), tf.zeros(columns)
        )
        positives, row_max, row_sum = tf.unstack(
            tf.ensure_shape(rows.concat(), (self.num_rows, 3)), axis=1
        )
        column_sum = column_max + tf.math.log(column_sum)
        column_max, column_sum = self._over_replicas(column_max, column_sum)
        own = [self._own(column) for column in (column_max, column_sum)]
        margins = tf.stack([row_sum, own[1]]) - positives
        hits = tf.stack([row_max, own[0]]) < positives
        all_positives = self.replicas.gather(positives)
        return _Sums(
            loss=self._mean(tf.nn.softplus(margins)),
            accuracy=self._mean(tf.cast(hits, tf.float32)),
            row_total=positives + tf.nn.softplus(row_sum - positives),
            column_total=all_positives + tf.nn.softplus(column_sum - all_positives),
            pull=tf.reduce_sum(tf.sigmoid(margins), 0),
        )

    def gradients(self, sums):
        """Second sweep: gradients by images `[n, D]`, texts `[n, D]` and `t`."""

        def body(block, by_images, by_texts):
            _, negatives = self._logits(block)
            row_total = self._block(sums.row_total, block)[:, tf.newaxis]
            push = tf.exp(negatives - row_total) + tf.exp(negatives - sums.column_total)
            by_images = by_images.write(block, tf.matmul(push, self.texts))
            images = self._block(self.images, block)
            by_texts += tf.matmul(push, images, transpose_a=True)
            return block + 1, by_images, by_texts

        by_images = tf.TensorArray(
            tf.float32, self.num_blocks, element_shape=(self.block_rows, self.dim)
        )
        _, by_images, by_texts = self._loop(
            body, by_images, tf.zeros((self.batch_size, self.dim))
        )
        by_images = tf.ensure_shape(by_images.concat(), (self.num_rows, self.dim))
        by_texts = self._own(self.replicas.total(by_texts))
        pull = sums.pull[:, tf.newaxis]
        weight = self.scale / (2 * self.batch_size)
        by_images = weight * (by_images - pull * self._own(self.texts))
        by_texts = weight * (by_texts - pull * self.images)
        # logits = exp(t) x.y: the gradient by t is that by x along x.
        return by_images, by_texts, tf.reduce_sum(self.images * by_images)

    def _logits(self, block):
        """Logits of a block: of its pairs, `[rows]`, and its negatives, `[rows, B]`."""
        images = self._block(self.images, block)
        logits = tf.matmul(images * self.scale, self.texts, transpose_b=True)
        rows = tf.range(self.block_rows)
        own = self.first_row + block * self.block_rows + rows
        indices = tf.stack([rows, own], axis=1)
        positives = tf.gather_nd(logits, indices)
        if self.caption_ids is None:
            nothing = tf.fill((self.block_rows,), NO_NEGATIVE)
            return positives, tf.tensor_scatter_nd_update(logits, indices, nothing)
        same = tf.equal(
            self._block(self.caption_ids, block)[:, tf.newaxis], self.all_caption_ids
        )
        return positives, tf.where(same, NO_NEGATIVE, logits)

    def _loop(self, body, *values):
        return tf.while_loop(
            lambda block, *_: block < self.num_blocks,
            body,
            (0, *values),
            # More would hold the blocks of several iterations at a time.
            parallel_iterations=1,
            maximum_iterations=self.num_blocks,
        )

    def _block(self, rows, block):
        size = [self.block_rows, *rows.shape[1:]]
        begin = [block * self.block_rows] + [0] * (len(size) - 1)
        return tf.slice(rows, begin, size)  # of a static size, which XLA needs

    def _own(self, columns):
        """This replica's part `[n, ...]` of something `[B, ...]`."""
        size = [self.num_rows, *columns.shape[1:]]
        return tf.slice(columns, [self.first_row] + [0] * (len(size) - 1), size)

    def _over_replicas(self, column_max, column_sum):
        """Largest and log-sum-exp of the columns over the rows of all replicas."""
        if self.replicas.count == 1:
            return column_max, column_sum
        column_max = self.replicas.gather(column_max[tf.newaxis])
        column_sum = self.replicas.gather(column_sum[tf.newaxis])
        return tf.reduce_max(column_max, 0), tf.reduce_logsumexp(column_sum, 0)

    def _mean(self, values):
        """Mean over both directions and all pairs of something `[2, n]`."""
        return self.replicas.total(tf.reduce_sum(values)) / (2 * self.batch_size)


def largest_divisor(number, limit):
    """The largest divisor of `number` that is at most `limit` (and at least 1)."""
    return max(d for d in range(1, max(1, min(number, limit)) + 1) if number % d == 0)
