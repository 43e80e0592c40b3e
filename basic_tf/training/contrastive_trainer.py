"""Phases 2 and 3 of BASIC: contrastive training, of one encoder or of both."""

import tensorflow as tf

from basic_tf import losses, replicas, streaming_loss
from basic_tf.models import dual_encoder
from basic_tf.optimizers import groups
from basic_tf.training import global_batch_norm, microbatching, slot_accumulation
from basic_tf.training.stateless_encoder import StatelessEncoder
from basic_tf.training.trainer import Trainer, all_finite, assign_if, trained_by

MAX_DENSE_BATCH_SIZE = 4096  # from here on the streaming loss is no slower


class ContrastiveTrainer(Trainer):
    """Phases 2 and 3: the symmetric contrastive loss (BASIC sections 3 and 8).

    Args:
        model: `DualEncoder`.
        rules: see `groups.match_rules`. A variable that is not trained has no optimizer
            slots; an encoder without a trained variable keeps its statistics, too.
        microbatch_image: M of the image encoder, a divisor of B; 0 for no microbatches.
        microbatch_text: M of the text encoder.
        batch_norm: see `StatelessEncoder`.
        accumulate: "buffer" adds the gradients of the microbatches up; "slots" puts
            them straight into the optimizer's moments, see `slot_accumulation`.
        seed: int, of the random masks.
        rematerialization: see `rematerialization.stand_ins`.

    Batches: `{"image": [B, H, W, 3], "token_ids": [B, L]}`, or `"image_embedding":
    [B, D]` in place of `"image"`; with `"caption_ids": [B]`, pairs of the same caption
    are no negatives of each other, see `losses.contrastive_loss`.

    Raises:
        ValueError: if a variable does not match exactly one of the rules, none is
            trained, `accumulate` is unknown or does not go with `batch_norm`, and as
            `StatelessEncoder`.
    """

    metric_names = ("loss", "accuracy", "temperature")

    def __init__(
        self,
        model,
        rules=groups.ONE_RULE,
        microbatch_image=0,
        microbatch_text=0,
        batch_norm="microbatch",
        accumulate="buffer",
        seed=0,
        rematerialization="none",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if accumulate not in ("buffer", "slots"):
            raise ValueError(f"accumulate {accumulate!r} is none of buffer, slots")
        if accumulate == "slots" and batch_norm == "global":
            raise ValueError("batch_norm global needs accumulate buffer")
        self.accumulate = accumulate
        self.dual_encoder = model
        self.microbatch_image = microbatch_image
        self.microbatch_text = microbatch_text
        variables = model.trainable_variables
        self.trained_variables = trained_by(variables, rules)
        trained = {id(variable) for variable in self.trained_variables}
        self._trains_scale = id(model.log_scale) in trained
        self._images, self._texts = (
            StatelessEncoder(
                encode,
                encoder,
                [v for v in encoder.trainable_variables if id(v) in trained],
                seed + index,
                batch_norm,
                rematerialization,
            )
            for index, (encode, encoder) in enumerate(
                (
                    (model.encode_image, model.image_encoder),
                    (model.encode_text, model.text_encoder),
                )
            )
        )
        of_batch = batch_norm == "global"
        self._form = global_batch_norm.encode if of_batch else microbatching.encode
        self.built = True

    @property
    def microbatch_sizes(self):
        """Of each field of a batch that goes through an encoder, M or 0."""
        return {"image": self.microbatch_image, "token_ids": self.microbatch_text}

    @property
    def trains_images(self):
        """Whether any variable of the image encoder is trained."""
        return self._images.is_trained

    def call(self, batch, training=False):
        """A batch -> image and text embeddings, `[B, D]` float32 unit vectors."""
        return self.dual_encoder(batch, training=training)

    def embed(self, batch):
        """The forward half of a step: `microbatching.Pass` of images, and of texts."""
        texts = self._encode(
            self._texts, batch["token_ids"], self.microbatch_text, self._form
        )
        return self._embed_images(batch), texts

    def train_step(self, batch):
        log_scale = self.dual_encoder.log_scale
        images, texts = self.embed(batch)
        inputs = [images.embeddings, texts.embeddings]
        inputs.append(tf.convert_to_tensor(log_scale.value))
        with microbatching.watching(inputs) as tape:
            loss, accuracy = contrastive(*inputs, batch.get("caption_ids"))
        by_images, by_texts, by_scale = tape.gradient(loss, inputs)
        passes = (self._images, images, by_images), (self._texts, texts, by_texts)
        passes = [each for each in passes if each[0].is_trained]
        step = self._step_in_slots if self.accumulate == "slots" else self._step
        finite = step(loss, passes, by_scale)
        if self._trains_scale:
            log_scale.assign(tf.minimum(log_scale, dual_encoder.MAX_LOG_SCALE))
        return self._report(
            {"loss": loss, "accuracy": accuracy, "temperature": tf.exp(-inputs[2])},
            finite,
        )

    def _step(self, loss, passes, by_scale):
        gradients, variables, statistics = [], [], []
        for encoder, run, by_embeddings in passes:
            of_encoder, after = run.backward(by_embeddings)
            gradients += of_encoder
            variables += encoder.weights
            statistics.append(after)
        if self._trains_scale:
            gradients.append(by_scale)
            variables.append(self.dual_encoder.log_scale)
        encoders = [encoder for encoder, _, _ in passes]
        return self._take_step(loss, gradients, variables, encoders, statistics)

    def _step_in_slots(self, loss, passes, by_scale):
        together = replicas.current()
        remainders, moments, variables, statistics = [], [], [], []
        for encoder, run, by_embeddings in passes:
            if run.batch.num_microbatches == 1:
                gradients, after = run.backward(by_embeddings)
                firsts, seconds = slot_accumulation.put(
                    gradients, encoder.weights, self.optimizer, together
                )
            else:
                firsts, seconds, after = slot_accumulation.accumulate(
                    run.batch, by_embeddings, self.optimizer
                )
            remainders += firsts
            moments += seconds
            variables += encoder.weights
            statistics.append(after)
        if self._trains_scale:
            log_scale = [self.dual_encoder.log_scale]
            firsts, seconds = slot_accumulation.put(
                [by_scale], log_scale, self.optimizer, together
            )
            remainders += firsts
            moments += seconds
            variables += log_scale
        # By now the first moments have moved: nothing is kept as it was.
        # The squares of their roots are these, not squares of squares.
        finite = all_finite([loss, *map(tf.sqrt, tf.nest.flatten(moments))])
        self.optimizer.apply_moments(variables, remainders, moments)
        for (encoder, _, _), after in zip(passes, statistics, strict=True):
            assign_if(finite, encoder.statistics, after)
        return finite

    def _embed_images(self, batch):
        if "image_embedding" not in batch:
            return self._encode(
                self._images, batch["image"], self.microbatch_image, self._form
            )
        if self._images.is_trained:
            raise ValueError("a batch of image embeddings cannot train their encoder")
        return microbatching.Pass(batch["image_embedding"], backward=None)


def contrastive(image_embeddings, text_embeddings, log_scale, caption_ids=None):
    """The contrastive loss over all replicas, in the form that suits the batch size.

    Args and returns as `streaming_contrastive_loss`.
    """
    values = image_embeddings, text_embeddings, log_scale, caption_ids
    together = replicas.current()
    if is_dense(image_embeddings.shape[0], together.count):
        return losses.contrastive_loss(*values)
    return streaming_loss.streaming_contrastive_loss(*values, replicas=together)


def is_dense(batch_size, num_replicas=1):
    """Whether the loss of a batch is computed in its dense form."""
    return num_replicas == 1 and batch_size <= MAX_DENSE_BATCH_SIZE
