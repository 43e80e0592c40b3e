"""The phases of a training run (BASIC section 8), each made from its configuration.

1. `supervised`: the image encoder alone, softmax over the names.
2. `contrastive` with `train="text_encoder|log_scale"`: the image encoder is frozen, its
   embeddings of the training images are computed once.
3. `contrastive` with `train="."`: both encoders together.
"""

import dataclasses
from collections.abc import Callable

import keras
from absl import logging

from basic_tf.data import batches
from basic_tf.evaluation import features
from basic_tf.optimizers import adafactorw, schedules
from basic_tf.training import trainer as trainers


@dataclasses.dataclass(frozen=True)
class Phase:
    """A phase, ready to run.

    Attributes:
        name: its name in the configuration.
        steps: optimizer steps.
        batch_size: B.
        trainer: compiled Keras model with the phase's `train_step`.
        make_batches: `(first_step, last_step) -> tf.data.Dataset`.
    """

    name: str
    steps: int
    batch_size: int
    trainer: keras.Model
    make_batches: Callable

    def variables(self):
        """What a checkpoint inside the phase holds, by name."""
        model = self.trainer.dual_encoder
        own = [v for v in self.trainer.variables if not _contains(model.variables, v)]
        groups = {
            "model": model.variables,
            "phase": own,
            "optimizer": self.trainer.optimizer.variables,
        }
        return {
            f"{group}/{variable.path}": variable.value
            for group, variables in groups.items()
            for variable in variables
        }


def make_phase(name, config, model, examples, tokenizer, image_size, seed):
    """Builds the trainer, optimizer and data of a phase.

    Args:
        name: name of the phase.
        config: its configuration: `kind`, `steps`, `batch_size`, `learning_rate`,
            `min_learning_rate`, `warmup_steps`, `decay`, `augmentation`; for
            `supervised` also `label_balance`, for `contrastive` `train` and
            `exclude_equal_captions`.
        model: `DualEncoder`.
        examples: `sources.Examples` to train on.
        tokenizer: `Tokenizer`.
        image_size: side of the images in pixels.
        seed: int.

    Returns:
        `Phase`.

    Raises:
        ValueError: for an unknown kind, or data that the kind cannot use.
    """
    kinds = {"supervised": _supervised, "contrastive": _contrastive}
    if config.kind not in kinds:
        raise ValueError(
            f"phase {name}: kind {config.kind!r} is none of {', '.join(kinds)}"
        )
    batches.check_batch_size(config.batch_size, len(examples))
    trainer, fields = kinds[config.kind](config, model, examples, tokenizer, image_size)
    schedule = schedules.warmup_cosine(
        config.learning_rate,
        config.steps,
        config.warmup_steps,
        config.min_learning_rate,
    )
    optimizer = adafactorw.AdaFactorW(schedule, decay=config.decay)
    optimizer.build(trainer.trained_variables)
    # XLA is slower than TensorFlow's own kernels on CPUs and compiles for minutes.
    trainer.compile(optimizer=optimizer, jit_compile=False)

    def make_batches(first_step, last_step):
        steps = batches.shuffled_indices(
            len(examples), config.batch_size, first_step, last_step, seed
        )
        images = None
        if "image_embedding" not in fields:
            images = batches.training_images(
                examples, image_size, steps, seed, config.augmentation.to_dict()
            )
        return batches.training_batches(steps, fields, images)

    return Phase(name, config.steps, config.batch_size, trainer, make_batches)


def _supervised(config, model, examples, tokenizer, image_size):
    if not examples.label_sets:
        raise ValueError("a supervised phase needs labelled examples; these have none")
    trainer = trainers.SupervisedTrainer(model, len(examples.label_names))
    targets = batches.label_targets(examples, config.label_balance)
    return trainer, {"labels": batches.row_loader(targets)}


def _contrastive(config, model, examples, tokenizer, image_size):
    trainer = trainers.ContrastiveTrainer(
        model, config.train, config.exclude_equal_captions
    )
    captions = batches.row_loader(examples.captions)
    fields = {"token_ids": lambda indices: tokenizer(captions(indices))}
    if not trainer.trains_images:
        if config.augmentation:
            raise ValueError(
                "augmentation must be empty in a phase whose image encoder is frozen, "
                "as it embeds every image once; "
                f"it is {config.augmentation.to_dict()}"
            )
        logging.info("the image encoder is frozen: embedding all training images once")
        embeddings = features.embed_images(model, examples, image_size)
        fields["image_embedding"] = batches.row_loader(embeddings)
    return trainer, fields


def _contains(variables, variable):
    return any(variable is other for other in variables)
