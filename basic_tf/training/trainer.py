"""Trainers: Keras models whose `train_step` is the step of a phase."""

import functools

import keras
import tensorflow as tf

from basic_tf import losses, replicas, slices, streaming_loss
from basic_tf.models import dual_encoder
from basic_tf.optimizers import groups
from basic_tf.training import global_batch_norm, microbatching, slot_accumulation
from basic_tf.training.stateless_encoder import StatelessEncoder

MAX_DENSE_BATCH_SIZE = 4096  # from here on the streaming loss is no slower


class _Trainer(keras.Model):
    """What trainers share: the update, and metrics averaged since the last reset."""

    metric_names = ("loss",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._means = {name: keras.metrics.Mean(name) for name in self.metric_names}

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Trainers are built. Under a strategy Keras would average a batch over
        # replicas first, which fails for dictionaries on several machines.
        pass

    def _encode(self, encoder, inputs, microbatch_size, form, **options):
        """`microbatching.encode`, or another form of it, at this step."""
        return form(
            encoder,
            inputs,
            microbatch_size,
            self.optimizer.iterations,
            replicas=replicas.current(),
            **options,
        )

    def _report(self, values):
        for name, value in values.items():
            self._means[name].update_state(value)
        results = {name: mean.result() for name, mean in self._means.items()}
        if isinstance(
            tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy
        ):  # where Keras averages over the first axis
            results = {name: value[tf.newaxis] for name, value in results.items()}
        return results


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

    Raises:
        ValueError: for an unknown `batch_norm`; in a step, if `microbatch_image` does
            not divide B.

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
        """`[B, H, W, 3]` -> logits `[B, C]`, float32."""
        outputs = self.dual_encoder.image_encoder(images, training=training)
        return tf.cast(self.classifier(outputs), tf.float32)

    def train_step(self, batch):
        encode = functools.partial(
            self._encode, self._encoder, batch["image"], self.microbatch_image
        )
        if self._encoder.batch_norm == "global":
            run = encode(global_batch_norm.encode)
            with microbatching.watching(run.embeddings) as tape:
                loss, accuracy = _classify(run.embeddings, batch["labels"])
            gradients = tape.gradient(loss, run.embeddings)
            gradients /= replicas.current().count
            gradients, statistics = run.backward(gradients)
        else:

            def loss_of(index, logits):
                labels = slices.take(batch["labels"], index, logits.shape[0])
                loss, accuracy = _classify(logits, labels)
                return loss, (loss, accuracy)

            gradients, statistics, (loss, accuracy) = encode(
                microbatching.run_separable, loss=loss_of, num_metrics=2
            )
        _assign(self._encoder.statistics, statistics)
        self.optimizer.apply(gradients, self._encoder.weights)
        return self._report({"loss": loss, "accuracy": accuracy})


def _classify(logits, labels):
    """Mean loss of `[B, C]`, and how often the highest logit is one of the labels."""
    best = tf.argmax(logits, axis=1)
    hits = tf.gather(labels, best, axis=1, batch_dims=1) > 0
    accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
    return losses.multi_label_softmax_loss(labels, logits), accuracy


def _assign(variables, values):
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


class ContrastiveTrainer(_Trainer):
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

    Batches: `{"image": [B, H, W, 3], "token_ids": [B, L]}`, or `"image_embedding":
    [B, D]` in place of `"image"`; with `"caption_ids": [B]`, pairs of the same caption
    are no negatives of each other, see `losses.contrastive_loss`.

    Raises:
        ValueError: if a variable does not match exactly one of the rules, none is
            trained, or `accumulate` is unknown or does not go with `batch_norm`.
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
        matched = groups.match_rules(variables, rules)
        self.trained_variables = [
            variable
            for variable, rule in zip(variables, matched, strict=True)
            if rule.train
        ]
        if not self.trained_variables:
            raise ValueError(f"rules {rules} leave no variable to train")
        trained = {id(variable) for variable in self.trained_variables}
        self._trains_scale = id(model.log_scale) in trained
        self._images, self._texts = (
            StatelessEncoder(
                encode,
                encoder,
                [v for v in encoder.trainable_variables if id(v) in trained],
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
        of_batch = batch_norm == "global"
        self._form = global_batch_norm.encode if of_batch else microbatching.encode
        self.built = True

    @property
    def trains_images(self):
        """Whether any variable of the image encoder is trained."""
        return self._images.is_trained

    def call(self, batch, training=False):
        """A batch -> image and text embeddings, `[B, D]` float32 unit vectors."""
        return self.dual_encoder(batch, training=training)

    def train_step(self, batch):
        log_scale = self.dual_encoder.log_scale
        images = self._embed_images(batch)
        texts = self._encode(
            self._texts, batch["token_ids"], self.microbatch_text, self._form
        )
        inputs = [images.embeddings, texts.embeddings]
        inputs.append(tf.convert_to_tensor(log_scale.value))
        with microbatching.watching(inputs) as tape:
            loss, accuracy = contrastive(*inputs, batch.get("caption_ids"))
        by_images, by_texts, by_scale = tape.gradient(loss, inputs)
        passes = (self._images, images, by_images), (self._texts, texts, by_texts)
        passes = [each for each in passes if each[0].is_trained]
        if self.accumulate == "slots":
            self._step_in_slots(passes, by_scale)
        else:
            self._step(passes, by_scale)
        if self._trains_scale:
            log_scale.assign(tf.minimum(log_scale, dual_encoder.MAX_LOG_SCALE))
        return self._report(
            {"loss": loss, "accuracy": accuracy, "temperature": tf.exp(-inputs[2])}
        )

    def _step(self, passes, by_scale):
        gradients, variables = [], []
        for encoder, run, by_embeddings in passes:
            of_encoder, statistics = run.backward(by_embeddings)
            gradients += of_encoder
            variables += encoder.weights
            _assign(encoder.statistics, statistics)
        if self._trains_scale:
            gradients.append(by_scale)
            variables.append(self.dual_encoder.log_scale)
        self.optimizer.apply(gradients, variables)

    def _step_in_slots(self, passes, by_scale):
        remainders, moments, variables = [], [], []
        for encoder, run, by_embeddings in passes:
            *of_encoder, statistics = slot_accumulation.accumulate(
                run.batch, by_embeddings, self.optimizer
            )
            remainders += of_encoder[0]
            moments += of_encoder[1]
            variables += encoder.weights
            _assign(encoder.statistics, statistics)
        if self._trains_scale:
            log_scale = self.dual_encoder.log_scale
            first, second = self.optimizer.moments_after(by_scale, log_scale)
            slot, _ = self.optimizer.slots(log_scale)
            slot.assign(first)
            remainders.append(first - tf.cast(slot.value, tf.float32))
            moments.append(second)
            variables.append(log_scale)
        self.optimizer.apply_moments(variables, remainders, moments)

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
