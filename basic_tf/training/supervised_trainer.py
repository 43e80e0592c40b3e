"""Phase 1 of BASIC: the image encoder alone, on labelled images."""

import functools

import keras
import tensorflow as tf

from basic_tf import losses, replicas
from basic_tf.optimizers import groups
from basic_tf.training import global_batch_norm, microbatching
from basic_tf.training.stateless_encoder import StatelessEncoder
from basic_tf.training.trainer import Trainer, trained_by


class SupervisedTrainer(Trainer):
    """Phase 1: the image encoder alone, softmax over the names (BASIC section 8).

    A linear classifier reads the encoder's output as it is, before normalisation, which
    learns faster than cosines do, and is dropped afterwards.

    Args:
        model: `DualEncoder`; only its image encoder is trained.
        num_classes: C.
        rules: see `groups.match_rules`; "classifier" is a path, too.
        microbatch_image: M, a divisor of B; 0 for no microbatches.
        batch_norm: see `StatelessEncoder`.
        seed: int, of the random masks.
        rematerialization: see `rematerialization.stand_ins`.

    Raises:
        ValueError: as `StatelessEncoder`, and as `ContrastiveTrainer` for rules; in a
            step, if `microbatch_image` does not divide B.

    `accuracy` is how often the highest logit is one of the example's labels.

    Batches: `{"image": [B, H, W, 3], "labels": [B, C] multi-hot or weights}`.
    """

    metric_names = ("loss", "accuracy")

    def __init__(
        self,
        model,
        num_classes,
        rules=groups.ONE_RULE,
        microbatch_image=0,
        batch_norm="microbatch",
        seed=0,
        rematerialization="none",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dual_encoder = model
        self.microbatch_image = microbatch_image
        self.classifier = keras.layers.Dense(num_classes, name="classifier")
        self.classifier.build((None, model.image_encoder.embedding_dim))
        self.trained_variables = trained_by(
            [
                *model.image_encoder.trainable_variables,
                *self.classifier.trainable_variables,
            ],
            rules,
        )
        self._encoder = StatelessEncoder(
            self.call,
            model.image_encoder,
            self.trained_variables,
            seed,
            batch_norm,
            rematerialization,
        )
        self.built = True

    @property
    def microbatch_sizes(self):
        """Of each field of a batch that goes through an encoder, M or 0."""
        return dict.fromkeys(("image", "labels"), self.microbatch_image)

    def call(self, images, training=False):
        """`[B, H, W, 3]` -> logits `[B, C]`, float32."""
        outputs = self.dual_encoder.image_encoder(images, training=training)
        return tf.cast(self.classifier(outputs), tf.float32)

    def train_step(self, batch):
        labels = microbatching.as_parts(batch["labels"], self.microbatch_image)
        encode = functools.partial(
            self._encode, self._encoder, batch["image"], self.microbatch_image
        )
        if self._encoder.batch_norm == "global":
            run = encode(global_batch_norm.encode)
            with microbatching.watching(run.embeddings) as tape:
                loss, accuracy = _classify(
                    run.embeddings, tf.reshape(labels.values, run.embeddings.shape)
                )
            gradients = tape.gradient(loss, run.embeddings)
            gradients /= replicas.current().count
            gradients, statistics = run.backward(gradients)
        else:

            def loss_of(index, logits):
                loss, accuracy = _classify(logits, labels.part(index))
                return loss, (loss, accuracy)

            gradients, statistics, (loss, accuracy) = encode(
                microbatching.run_separable, loss=loss_of, num_metrics=2
            )
        finite = self._take_step(
            loss, gradients, self._encoder.weights, [self._encoder], [statistics]
        )
        return self._report({"loss": loss, "accuracy": accuracy}, finite)


def _classify(logits, labels):
    """Mean loss of `[B, C]`, and how often the highest logit is one of the labels."""
    # The first of equally high ones counts: argmax, which DTensor does not know.
    is_best = tf.equal(logits, tf.reduce_max(logits, axis=1, keepdims=True))
    order = tf.cast(is_best, tf.int32) * tf.range(logits.shape[1], 0, -1)
    is_first = tf.equal(order, tf.reduce_max(order, axis=1, keepdims=True))
    hits = tf.reduce_any(is_first & (labels > 0), axis=1)
    accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
    return losses.multi_label_softmax_loss(labels, logits), accuracy
