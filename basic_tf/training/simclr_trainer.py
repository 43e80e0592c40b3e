"""SimCLR: the image encoder alone, on images without names (Chen et al. 2020)."""

import keras
import tensorflow as tf

from basic_tf import losses, replicas, streaming_nt_xent
from basic_tf.models import dual_encoder
from basic_tf.models.projection_head import ProjectionHead
from basic_tf.optimizers import groups
from basic_tf.training import contrastive_trainer, global_batch_norm, microbatching
from basic_tf.training.stateless_encoder import StatelessEncoder
from basic_tf.training.trainer import Trainer, trained_by


class SimCLRTrainer(Trainer):
    """NT-Xent of two views of each image, behind a projection head.

    The head is dropped afterwards: the representation is the output of the image
    encoder. Both views of an image are in the same microbatch.

    Args:
        model: `DualEncoder`; only its image encoder is trained.
        rules: see `groups.match_rules`; the paths of "projection_head" and "probe" are
            there, too.
        temperature: tau, a constant: 0.1 on ImageNet, 0.5 on CIFAR.
        head_layers: of `ProjectionHead`; 0 compares the representations themselves.
        head_dim: width of the head's output.
        num_classes: C of the online probe, a linear classifier that reads the
            representations of the step and from which no gradient reaches the encoder;
            0 for none.
        microbatch_image: M, images of a microbatch, a divisor of B; 0 for no
            microbatches.
        batch_norm: see `StatelessEncoder`; "global" is SimCLR's, over all replicas.
            With statistics of its own, a replica could tell a pair by those that its
            views share.
        seed: int, of the random masks.
        rematerialization: see `rematerialization.stand_ins`.

    Batches: `{"image": [B, 2, H, W, 3]}`, two views of each image; with a probe also
    `"labels": [B, C]`, multi-hot or weights.

    `accuracy` is that of NT-Xent; `probe_accuracy` how often the probe's highest logit
    is one of the labels.

    Raises:
        ValueError: as `StatelessEncoder`, and as `ContrastiveTrainer` for rules; in a
            step, if `microbatch_image` does not divide B.

    Source: SimCLR algorithm 1, and section B.7 for the probe.
    """

    metric_names = ("loss", "accuracy")

    def __init__(
        self,
        model,
        rules=groups.ONE_RULE,
        temperature=0.1,
        head_layers=2,
        head_dim=128,
        num_classes=0,
        microbatch_image=0,
        batch_norm="global",
        seed=0,
        rematerialization="none",
        **kwargs,
    ):
        if num_classes:
            self.metric_names = ("loss", "accuracy", "probe_accuracy")
        super().__init__(**kwargs)
        self.dual_encoder = model
        self.temperature = temperature
        self.microbatch_image = microbatch_image
        self.projected = _Projected(model.image_encoder, head_layers, head_dim)
        self.probe = None
        self._of_probe = []
        if num_classes:
            self.probe = keras.layers.Dense(num_classes, dtype="float32", name="probe")
            self.probe.build((None, self.projected.representation_dim))
            self._of_probe = self.probe.trainable_variables
        variables = [*self.projected.trainable_variables, *self._of_probe]
        self.trained_variables = trained_by(variables, rules)
        of_probe = {id(variable) for variable in self._of_probe}
        self._encoder = StatelessEncoder(
            self.projected.call,
            self.projected,
            [v for v in self.trained_variables if id(v) not in of_probe],
            seed,
            batch_norm,
            rematerialization,
        )
        of_batch = batch_norm == "global"
        self._form = global_batch_norm.encode if of_batch else microbatching.encode
        self.built = True

    def call(self, views, training=False):
        """`[M, H, W, 3]` -> `[M, P]` unit vectors that the loss compares."""
        return self.projected.split(self.projected(views, training=training))[0]

    def train_step(self, batch):
        images = batch["image"]
        batch_size = images.shape[0]
        microbatching.check_size("microbatch size", self.microbatch_image, batch_size)
        run = self._encode(
            self._encoder,
            tf.reshape(images, (2 * batch_size, *images.shape[2:])),
            2 * self.microbatch_image,
            self._form,
        )
        embeddings, features = self.projected.split(run.embeddings)
        with microbatching.watching(embeddings) as tape:
            loss, accuracy = nt_xent(embeddings, self.temperature)
        gradient = tape.gradient(loss, embeddings)
        gradient = tf.concat([gradient, tf.zeros_like(features)], axis=1)
        gradients, statistics = run.backward(gradient)
        values = {"loss": loss, "accuracy": accuracy}
        variables = list(self._encoder.weights)
        if self.probe is not None:
            of_probe, values["probe_accuracy"] = self._probe_step(features, batch)
            gradients, variables = gradients + of_probe, variables + self._of_probe
        finite = self._take_step(
            loss, gradients, variables, [self._encoder], [statistics]
        )
        return self._report(values, finite)

    def _probe_step(self, features, batch):
        """This replica's share of the probe's gradients, and its accuracy."""
        labels = tf.repeat(batch["labels"], 2, axis=0)
        weights = [tf.convert_to_tensor(v.value) for v in self._of_probe]
        with microbatching.watching(weights) as tape:
            logits = tf.matmul(features, weights[0]) + weights[1]
            loss = losses.multi_label_softmax_loss(labels, logits)
        chosen = tf.gather(labels, tf.argmax(logits, axis=1), batch_dims=1)
        accuracy = tf.reduce_mean(tf.cast(chosen > 0, tf.float32))
        count = replicas.current().count
        return [each / count for each in tape.gradient(loss, weights)], accuracy


class _Projected(keras.Model):
    """An image encoder and its head: `[M, H, W, 3]` -> `[M, P + D]` float32.

    The first P are unit vectors of the head, the others the representation.
    """

    def __init__(self, image_encoder, head_layers, head_dim):
        super().__init__(name="projected")
        size = image_encoder.image_size
        shape = image_encoder.compute_output_shape((None, size, size, 3))
        self.representation_dim = shape[-1]
        self.projection_dim = head_dim if head_layers else shape[-1]
        self.embedding_dim = self.projection_dim + self.representation_dim
        self.image_encoder, self.head = image_encoder, None
        if head_layers:
            self.head = ProjectionHead(
                head_layers,
                head_dim,
                dtype=image_encoder.dtype_policy,
                name="projection_head",
            )
            self.head.build(shape)
        self.built = True

    def call(self, views, training=False):
        features = projected = self.image_encoder(views, training=training)
        if self.head is not None:
            projected = self.head(features, training=training)
        features = tf.cast(features, tf.float32)
        return tf.concat([dual_encoder.normalize(projected), features], axis=1)

    def split(self, outputs):
        """Unit vectors `[M, P]` and representations `[M, D]`."""
        return tf.split(outputs, [self.projection_dim, self.representation_dim], 1)


def nt_xent(embeddings, temperature):
    """NT-Xent over all replicas, in the form that suits the batch size.

    Args and returns as `streaming_nt_xent_loss`.
    """
    together = replicas.current()
    if contrastive_trainer.is_dense(embeddings.shape[0], together.count):
        return losses.nt_xent_loss(embeddings, temperature)
    return streaming_nt_xent.streaming_nt_xent_loss(
        embeddings, temperature, replicas=together
    )
