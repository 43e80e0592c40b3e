"""Trainers: Keras models whose `train_step` is the step of a phase."""

import itertools

import keras
import tensorflow as tf

from basic_tf import losses
from basic_tf.models import dual_encoder
from basic_tf.optimizers import groups

TRAIN_ALL = ((".", True),)


class _Trainer(keras.Model):
    """What trainers share: the update, and metrics averaged since the last reset."""

    metric_names = ("loss",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._means = {name: keras.metrics.Mean(name) for name in self.metric_names}

    def _apply(self, tape, loss):
        """One optimizer step on the trained variables."""
        variables = self.trained_variables
        gradients = tape.gradient(loss, [v.value for v in variables])
        missing = [
            v.path for v, g in zip(variables, gradients, strict=True) if g is None
        ]
        if missing:
            raise ValueError(f"the loss does not depend on {', '.join(missing)}")
        self.optimizer.apply(gradients, variables)

    def _report(self, values):
        for name, value in values.items():
            self._means[name].update_state(value)
        return {name: mean.result() for name, mean in self._means.items()}


class SupervisedTrainer(_Trainer):
    """Phase 1: the image encoder alone, softmax over the names (BASIC section 8).

    A linear classifier reads the encoder's output as it is, before normalisation, which
    learns faster than cosines do, and is dropped afterwards.

    Args:
        model: `DualEncoder`; only its image encoder is trained.
        num_classes: C.

    `accuracy` is how often the highest logit is one of the example's labels.

    Batches: `{"image": [B, H, W, 3], "labels": [B, C] multi-hot or weights}`.
    """

    metric_names = ("loss", "accuracy")

    def __init__(self, model, num_classes, **kwargs):
        super().__init__(**kwargs)
        self.dual_encoder = model
        self.classifier = keras.layers.Dense(num_classes, name="classifier")
        self.classifier.build((None, model.image_encoder.embedding_dim))
        self.built = True

    @property
    def trained_variables(self):
        return [
            *self.dual_encoder.image_encoder.trainable_variables,
            *self.classifier.trainable_variables,
        ]

    def call(self, images, training=False):
        """`[B, H, W, 3]` -> logits `[B, C]`."""
        return self.classifier(
            self.dual_encoder.image_encoder(images, training=training)
        )

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            logits = self(batch["image"], training=True)
            loss = losses.multi_label_softmax_loss(batch["labels"], logits)
        self._apply(tape, loss)
        best = tf.argmax(logits, axis=1)
        hits = tf.gather(batch["labels"], best, axis=1, batch_dims=1) > 0
        accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
        return self._report({"loss": loss, "accuracy": accuracy})


class ContrastiveTrainer(_Trainer):
    """Phases 2 and 3: the symmetric contrastive loss (BASIC sections 3 and 8).

    Args:
        model: `DualEncoder`.
        train: `((pattern, bool), ...)` over variable paths, one pattern a variable:
            whether it is trained. One that is not has no optimizer slots. An encoder
            without a trained variable keeps its statistics, too.
        exclude_equal_captions: whether to leave a caption that occurs again in the
            batch out of the negatives; see `losses.contrastive_loss`.

    Batches: `{"image": [B, H, W, 3], "token_ids": [B, L]}`, or `"image_embedding":
    [B, D]` in place of `"image"`.

    Raises:
        ValueError: if a variable does not match exactly one pattern of `train`, or none
            is trained.
    """

    metric_names = ("loss", "accuracy", "temperature")

    def __init__(self, model, train=TRAIN_ALL, exclude_equal_captions=False, **kwargs):
        super().__init__(**kwargs)
        self.dual_encoder = model
        self.exclude_equal_captions = exclude_equal_captions
        variables = model.trainable_variables
        is_trained = groups.match_rules(variables, train)
        self.trained_variables = list(itertools.compress(variables, is_trained))
        if not self.trained_variables:
            raise ValueError(f"train {train} leaves no variable to train")
        trained = {id(variable) for variable in self.trained_variables}
        self.trains_images, self.trains_text = (
            any(id(v) in trained for v in encoder.trainable_variables)
            for encoder in (model.image_encoder, model.text_encoder)
        )
        self.built = True

    def call(self, batch, training=False):
        """A batch -> image and text embeddings, `[B, D]` float32 unit vectors."""
        if "image_embedding" in batch:
            image_embeddings = batch["image_embedding"]
        else:
            image_embeddings = self.dual_encoder.encode_image(
                batch["image"], training and self.trains_images
            )
        text_embeddings = self.dual_encoder.encode_text(
            batch["token_ids"], training and self.trains_text
        )
        return image_embeddings, text_embeddings

    def train_step(self, batch):
        log_scale = self.dual_encoder.log_scale
        with tf.GradientTape() as tape:
            image_embeddings, text_embeddings = self(batch, training=True)
            excluded = None
            if self.exclude_equal_captions:
                excluded = losses.equal_captions(batch["token_ids"])
            loss, accuracy = losses.contrastive_loss(
                image_embeddings, text_embeddings, log_scale, excluded
            )
        temperature = tf.exp(-log_scale)
        self._apply(tape, loss)
        log_scale.assign(tf.minimum(log_scale, dual_encoder.MAX_LOG_SCALE))
        return self._report(
            {"loss": loss, "accuracy": accuracy, "temperature": temperature}
        )
