"""NT-Xent of a large batch, a block of views at a time."""

import tensorflow as tf

from basic_tf import slices
from basic_tf.losses import NO_NEGATIVE
from basic_tf.replicas import ONE_REPLICA
from basic_tf.streaming_loss import choose_block


def streaming_nt_xent_loss(
    embeddings, temperature, block_views=None, replicas=ONE_REPLICA
):
    """`nt_xent_loss` that holds the logits of a block at a time, not `[2N, 2N]`.

    Every view is both an anchor and a candidate, so that the logits are symmetric: one
    log-sum-exp a view serves the rows and the columns, and the gradient by a view comes
    from its block alone. Three matrix products in all, one of them run only for
    gradients along with the logits made again. Sums are float32.

    Args:
        embeddings: `[2n, D]` unit vectors, of this replica alone and of a static shape;
            rows 2k and 2k + 1 are the views of an image, and N = R n.
        temperature: float, tau, a constant.
        block_views: views of a block, which must divide 2n; by default the largest
            divisor that `streaming_loss.BLOCK_ELEMENTS` allow.
        replicas: `Replicas`. Each takes its own views against all.

    Returns:
        `(loss, accuracy)` of all 2N views, as `nt_xent_loss`. The gradients are of the
        loss of all views.

    Raises:
        ValueError: if `block_views` does not divide 2n.
    """

    @tf.custom_gradient
    def compute(embeddings):
        sweep = _Sweep(embeddings, temperature, block_views, replicas)
        loss, accuracy, of_gradient = sweep.sums()

        def gradient(by_loss, by_accuracy):
            return by_loss * sweep.gradient(*of_gradient)

        return (loss, accuracy), gradient

    return compute(tf.cast(embeddings, tf.float32))


class _Sweep:
    """Sweeps over the logits `[2N, 2n]` of all views by this replica's.

    A block is `[2N, m]`, tall rather than wide, as in `streaming_loss`.
    """

    def __init__(self, own, temperature, block_views, replicas):
        self.own, self.temperature, self.replicas = own, temperature, replicas
        self.num_own, self.dim = own.shape
        self.num_views = self.num_own * replicas.count
        self.views = self._gather(own)
        self.block_views = choose_block(
            "views", block_views, self.num_own, self.num_views
        )
        self.num_blocks = self.num_own // self.block_views

    def sums(self):
        """First sweep.

        Returns:
            `(loss, accuracy, (total, pull))`: of each own view, `[2n]`, the log-sum-exp
            of all its candidates, and how far it is from certain.
        """

        def body(block, views):
            positives, negatives = self._logits(block)
            largest = tf.reduce_max(negatives, 0)
            total = tf.reduce_logsumexp(negatives, 0)
            values = tf.stack([positives, largest, total], 1)
            return block + 1, views.write(block, values)

        views = self._over_blocks(body, 3)
        positives, largest, total = tf.unstack(views, axis=1)
        margins = total - positives
        loss = self._mean(tf.nn.softplus(margins))
        accuracy = self._mean(tf.cast(largest < positives, tf.float32))
        total = positives + tf.nn.softplus(margins)
        return loss, accuracy, (total, tf.sigmoid(margins))

    def gradient(self, total, pull):
        """Second sweep: the gradient by the replica's own views, `[2n, D]`.

        Arguments as `sums` returns them. A view moves away from a negative by how much
        either takes the other for its positive, and towards its positive likewise.
        """
        all_totals = self._gather(total)[:, tf.newaxis]

        def body(block, views):
            _, negatives = self._logits(block)
            push = tf.exp(negatives - slices.take(total, block, self.block_views))
            push += tf.exp(negatives - all_totals)
            by_view = tf.matmul(push, self.views, transpose_a=True)
            return block + 1, views.write(block, by_view)

        pairs = tf.reshape(pull, (-1, 2))
        pull = tf.repeat(tf.reduce_sum(pairs, 1), 2)[:, tf.newaxis]
        partners = tf.reverse(tf.reshape(self.own, (-1, 2, self.dim)), [1])
        partners = tf.reshape(partners, self.own.shape)
        by_views = self._over_blocks(body, self.dim) - pull * partners
        return by_views / (self.temperature * self.num_views)

    def _logits(self, block):
        """Logits of a block: of its positives, `[m]`, and its negatives, `[2N, m]`."""
        views = slices.take(self.own, block, self.block_views)
        logits = tf.matmul(self.views, views / self.temperature, transpose_b=True)
        columns = tf.range(self.block_views)
        number = block * self.block_views + columns
        first = self.replicas.index * self.num_own
        itself = tf.stack([first + number, columns], 1)
        # Rows 2k and 2k + 1 differ in their last bit.
        other = tf.stack([first + tf.bitwise.bitwise_xor(number, 1), columns], 1)
        nothing = tf.fill((2 * self.block_views,), NO_NEGATIVE)
        neither = tf.concat([itself, other], 0)
        positives = tf.gather_nd(logits, other)
        return positives, tf.tensor_scatter_nd_update(logits, neither, nothing)

    def _over_blocks(self, body, width):
        """What `body` writes of each block, `[m, width]`, of all own views."""
        blocks = tf.TensorArray(
            tf.float32, self.num_blocks, element_shape=(self.block_views, width)
        )
        (blocks,) = slices.repeat(self.num_blocks, body, blocks)
        return tf.ensure_shape(blocks.concat(), (self.num_own, width))

    def _gather(self, own):
        """`[2n, ...]` of each replica -> `[2N, ...]`, of a static shape."""
        every = self.replicas.gather(own)
        return tf.ensure_shape(every, (self.num_views, *own.shape[1:]))

    def _mean(self, values):
        """Mean over all views of something `[2n]`."""
        return self.replicas.total(tf.reduce_sum(values)) / self.num_views
