"""Trainers: Keras models whose `train_step` is the step of a phase."""

import itertools

import keras
import tensorflow as tf

from basic_tf import losses, streaming_loss
from basic_tf.models import dual_encoder
from basic_tf.optimizers import groups
from basic_tf.training import global_batch_norm, microbatching
from basic_tf.training.stateless_encoder import StatelessEncoder

TRAIN_ALL = ((".", True),)
MAX_DENSE_BATCH_SIZE = 4096  # from here on the streaming loss is no slower


class _Trainer(keras.Model):
    """What trainers share: the update, and metrics averaged since the last reset."""

    metric_names = ("loss",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._means = {name: keras.metrics.Mean(name) for name in self.metric_names}

    def _update(self, encoder, gradients, statistics):
        """Assigns the statistics; `(gradient, variable)` pairs for the optimizer."""
        for variable, value in zip(encoder.statistics, statistics, strict=True):
            variable.assign(value)
        return zip(gradients, encoder.weights, strict=True)

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
        microbatch_image: M, a divisor of B; 0 for no microbatches.
        batch_norm: see `StatelessEncoder`.
        seed: int, of the random masks.

    `accuracy` is how often the highest logit is one of the example's labels.

    Batches: `{"image": [B, H, W, 3], "labels": [B, C] multi-hot or weights}`.
    """

    metric_names = ("loss", "accuracy")

    def __init__(
        self,
        model,
        num_classes,
        microbatch_image=0,
        batch_norm="microbatch",
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dual_encoder = model
        self.microbatch_image = microbatch_image
        self.classifier = keras.layers.Dense(num_classes, name="classifier")
        self.classifier.build((None, model.image_encoder.embedding_dim))
        self.trained_variables = [
            *model.image_encoder.trainable_variables,
            *self.classifier.trainable_variables,
        ]
        self._encoder = StatelessEncoder(
            self.call, model.image_encoder, self.trained_variables, seed, batch_norm
        )
        self.built = True

    def call(self, images, training=False):
        """`[B, H, W, 3]` -> logits `[B, C]`."""
        return self.classifier(
            self.dual_encoder.image_encoder(images, training=training)
        )

    def train_step(self, batch):
        def loss_of(index, logits):
            size = logits.shape[0]
            labels = microbatching.take(batch["labels"], index, size)
            best = tf.argmax(logits, axis=1)
            hits = tf.gather(labels, best, axis=1, batch_dims=1) > 0
            accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
            loss = losses.multi_label_softmax_loss(labels, logits)
            return loss, (loss, accuracy)

        gradients, statistics, (loss, accuracy) = microbatching.run_separable(
            self._encoder,
            batch["image"],
            self.microbatch_image,
            self.optimizer.iterations,
            loss_of,
            num_metrics=2,
        )
        pairs = self._update(self._encoder, gradients, statistics)
        self.optimizer.apply_gradients(pairs)
        return self._report({"loss": loss, "accuracy": accuracy})


class ContrastiveTrainer(_Trainer):
    """Phases 2 and 3: the symmetric contrastive loss (BASIC sections 3 and 8).

    Args:
        model: `DualEncoder`.
        train: `((pattern, bool), ...)` over variable paths, one pattern a variable:
            whether it is trained. One that is not has no optimizer slots. An encoder
            without a trained variable keeps its statistics, too.
        microbatch_image: M of the image encoder, a divisor of B; 0 for no microbatches.
        microbatch_text: M of the text encoder.
        batch_norm: see `StatelessEncoder`.
        seed: int, of the random masks.

    Batches: `{"image": [B, H, W, 3], "token_ids": [B, L]}`, or `"image_embedding":
    [B, D]` in place of `"image"`; with `"caption_ids": [B]`, pairs of the same caption
    are no negatives of each other, see `losses.contrastive_loss`.

    Raises:
        ValueError: if a variable does not match exactly one pattern of `train`, or none
            is trained.
    """

    metric_names = ("loss", "accuracy", "temperature")

    def __init__(
        self,
        model,
        train=TRAIN_ALL,
        microbatch_image=0,
        microbatch_text=0,
        batch_norm="microbatch",
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dual_encoder = model
        self.microbatch_image = microbatch_image
        self.microbatch_text = microbatch_text
        variables = model.trainable_variables
        is_trained = groups.match_rules(variables, train)
        self.trained_variables = list(itertools.compress(variables, is_trained))
        if not self.trained_variables:
            raise ValueError(f"train {train} leaves no variable to train")
        self._trained = {id(variable) for variable in self.trained_variables}
        self._images, self._texts = (
            StatelessEncoder(
                encode,
                encoder,
                [v for v in encoder.trainable_variables if id(v) in self._trained],
                seed + index,
                batch_norm,
            )
            for index, (encode, encoder) in enumerate(
                (
                    (model.encode_image, model.image_encoder),
                    (model.encode_text, model.text_encoder),
                )
            )
        )
        self.built = True

    @property
    def trains_images(self):
        return self._images.is_trained

    def call(self, batch, training=False):
        """A batch -> image and text embeddings, `[B, D]` float32 unit vectors."""
        return self.dual_encoder(batch, training=training)

    def train_step(self, batch):
        log_scale = self.dual_encoder.log_scale
        images = self._embed_images(batch)
        texts = self._run(self._texts, batch["token_ids"], self.microbatch_text)
        inputs = [
            images.embeddings,
            texts.embeddings,
            tf.convert_to_tensor(log_scale.value),
        ]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(inputs)
            form = contrastive_form(texts.embeddings.shape[0])
            loss, accuracy = form(*inputs, batch.get("caption_ids"))
        by_images, by_texts, by_scale = tape.gradient(loss, inputs)
        pairs = []
        for encoder, run, gradients in (
            (self._images, images, by_images),
            (self._texts, texts, by_texts),
        ):
            if encoder.is_trained:
                pairs += self._update(encoder, *run.backward(gradients))
        if id(log_scale) in self._trained:
            pairs.append((by_scale, log_scale))
        self.optimizer.apply_gradients(pairs)
        log_scale.assign(tf.minimum(log_scale, dual_encoder.MAX_LOG_SCALE))
        return self._report(
            {
                "loss": loss,
                "accuracy": accuracy,
                "temperature": tf.exp(-inputs[2]),
            }
        )

    def _embed_images(self, batch):
        if "image_embedding" in batch:
            return microbatching.Pass(batch["image_embedding"], backward=None)
        return self._run(self._images, batch["image"], self.microbatch_image)

    def _run(self, encoder, inputs, microbatch_size):
        form = global_batch_norm if encoder.batch_norm == "global" else microbatching
        return form.run(encoder, inputs, microbatch_size, self.optimizer.iterations)


def contrastive_form(batch_size):
    """The form of the contrastive loss that suits a batch size."""
    if batch_size <= MAX_DENSE_BATCH_SIZE:
        return losses.contrastive_loss
    return streaming_loss.streaming_contrastive_loss
