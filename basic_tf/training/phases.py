"""The phases of a training run (BASIC section 8), each made from its configuration.

1. `supervised`: the image encoder alone, softmax over the names.
2. `contrastive` with an image encoder that `rules` freeze: its embeddings of the
   training images are computed once.
3. `contrastive` with all variables trained: both encoders together.

In place of the first, `simclr` trains the image encoder without names (SimCLR).
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
import tensorflow as tf
from absl import logging

from basic_tf.data import augmentation as augmentations
from basic_tf.data import batches, example_order, simclr_augmentation
from basic_tf.evaluation import features
from basic_tf.training import (
    checkpoints,
    distribution,
    phase_optimizer,
    phase_sizes,
    sharding,
)
from basic_tf.training.contrastive_trainer import ContrastiveTrainer, is_dense
from basic_tf.training.simclr_trainer import SimCLRTrainer
from basic_tf.training.supervised_trainer import SupervisedTrainer


@dataclasses.dataclass(frozen=True)
class Phase:
    """A phase, ready to run.

    Attributes:
        name: its name in the configuration.
        steps: optimizer steps.
        batch_size: B.
        max_non_finite_steps: steps to skip, as their loss or gradient is not finite,
            before the run stops.
        trainer: compiled Keras model with the phase's `train_step`.
        make_batches: `(first_step, last_step) -> tf.data.Dataset`, distributed over the
            replicas of the current strategy.
    """

    name: str
    steps: int
    batch_size: int
    max_non_finite_steps: int
    trainer: keras.Model
    make_batches: Callable

    def variables(self):
        """What a checkpoint inside the phase holds, by name."""
        if self.trainer.sharded is not None:
            self.trainer.sharded.store()
        model = self.trainer.dual_encoder
        of_model = {id(variable) for variable in model.variables}
        own = [v for v in self.trainer.variables if id(v) not in of_model]
        return (
            checkpoints.by_path("model", model.variables)
            | checkpoints.by_path("phase", own)
            | checkpoints.by_path("optimizer", self.trainer.optimizer.variables)
        )


def check_fields(name, config, mesh=None):
    """Refuses a phase by its configuration alone, before any data is read.

    Args:
        name: name of the phase.
        config: see `make_phase`.
        mesh: `Mesh` that the steps run on, if any.

    Raises:
        ValueError: naming the phase, what is wrong, and what would do.
    """
    phase_optimizer.check_rates(name, config)
    try:
        if config.kind not in _KINDS:
            raise ValueError(f"kind {config.kind!r} is none of {', '.join(_KINDS)}")
        phase_sizes.check(config, mesh)
        augmentations.check(config.augmentation.to_dict())
    except ValueError as error:
        raise ValueError(f"phase {name}: {error}") from None


def check_phase(name, config, model, examples, mesh=None):
    """Refuses what would stop a phase later, when those before it have trained.

    Args:
        name: name of the phase.
        config: see `make_phase`.
        model: `DualEncoder`.
        examples: `sources.Examples` to train on.
        mesh: `Mesh` that the steps run on, if any.

    Raises:
        ValueError: naming the phase, what is wrong, and what would do.
    """
    check_fields(name, config, mesh)
    try:
        if _needs_labels(config):
            examples = examples.labelled()
        example_order.batch_counts(examples.groups(), config.batch_size)
        if _needs_labels(config) and not examples.label_sets:
            why = "kind supervised" if config.kind == "supervised" else "online_probe"
            raise ValueError(f"{why} needs labelled examples")
        if config.kind == "supervised":
            _supervised_trainer(config, model, examples)
            return
        if config.kind == "simclr":
            _check_simclr(config)
            _simclr_trainer(config, model, examples)
            return
        trainer = _contrastive_trainer(config, model)
        if config.augmentation and not trainer.trains_images:
            raise ValueError(
                "augmentation must be empty where the image encoder is frozen, as it "
                f"embeds every image once; it is {config.augmentation.to_dict()}"
            )
    except ValueError as error:
        raise ValueError(f"phase {name}: {error}") from None


def make_phase(name, config, model, examples, tokenizer, image_size, seed, mesh=None):
    """Builds the trainer, optimizer and data of a phase.

    Args:
        name: name of the phase.
        config: its configuration: `kind`, `steps`, `batch_size`, `learning_rate`,
            `min_learning_rate`, `warmup_steps`, `schedule`, `weight_decay`,
            `augmentation`, `microbatch_image`, `batch_norm`, `rematerialization`,
            `optimizer`, `optimizer_options`, `rules`, `max_non_finite_steps`; for
            `supervised` also `label_balance`, for `contrastive` `microbatch_text`,
            `accumulate` and `exclude_equal_captions`, for `simclr` `strength` (of the
            colours), `temperature`, `head_layers`, `head_dim` and `online_probe`.
        model: `DualEncoder`.
        examples: `sources.Examples` to train on.
        tokenizer: `Tokenizer`.
        image_size: side of the images in pixels.
        seed: int.
        mesh: `Mesh` that the steps run on, if any.

    Returns:
        `Phase`.

    Raises:
        ValueError: as `check_phase`.
    """
    check_phase(name, config, model, examples, mesh)
    if _needs_labels(config):
        examples = examples.labelled()
    _announce_batches(name, examples.groups(), config.batch_size)
    trainer, fields = _KINDS[config.kind](
        config, model, examples, tokenizer, image_size, seed
    )
    optimizer = phase_optimizer.make_optimizer(config)
    optimizer.build(trainer.trained_variables)
    # XLA is slower than TensorFlow's own kernels on CPUs and compiles for minutes.
    trainer.compile(optimizer=optimizer, jit_compile=False)
    if mesh is not None:
        trainer.sharded = sharding.ShardedStep(trainer, mesh)
        logging.info("%s", trainer.sharded.table())

    make_parts = functools.partial(
        _make_parts, config, examples, fields, image_size, seed
    )

    def make_batches(first_step, last_step):
        make = functools.partial(make_parts, first_step, last_step)
        return distribution.distribute_batches(make)

    return Phase(
        name,
        config.steps,
        config.batch_size,
        config.max_non_finite_steps,
        trainer,
        make_batches,
    )


def _announce_batches(name, groups, batch_size):
    """Says what an epoch leaves out."""
    counts = example_order.batch_counts(groups, batch_size)
    for count, (size, _) in zip(counts, groups, strict=True):
        logging.info(
            "phase %s: %d examples, %d of them in each of %d batches; %d others, drawn "
            "anew, wait for the next epoch",
            name, size, count, size // count, size % count,
        )  # fmt: skip


def _make_parts(
    config, examples, fields, image_size, seed, first_step, last_step, *parts
):
    """See `distribution.distribute_batches`, of the batches of some steps."""
    indices_by_step = example_order.mixed_indices(
        examples.groups(), config.batch_size, first_step, last_step, seed, *parts
    )
    images = None
    if config.kind == "simclr":
        images = batches.training_views(
            examples, image_size, indices_by_step, seed, config.strength
        )
    elif "image_embedding" not in fields:
        images = batches.training_images(
            examples,
            image_size,
            indices_by_step,
            seed,
            config.augmentation.to_dict(),
        )
    return batches.training_batches(indices_by_step, fields, images)


def _supervised(config, model, examples, tokenizer, image_size, seed):
    """The trainer, and the `batches.training_batches` fields of what it takes."""
    trainer = _supervised_trainer(config, model, examples, seed)
    labels = batches.label_loader(examples, config.label_balance)
    return trainer, {"labels": labels}


def _supervised_trainer(config, model, examples, seed=0):
    return SupervisedTrainer(
        model,
        len(examples.label_names),
        config.rules,
        config.microbatch_image,
        config.batch_norm,
        seed,
        config.rematerialization,
    )


def _needs_labels(config):
    """Whether a phase trains on labelled examples alone."""
    return config.kind == "supervised" or config.get("online_probe", False)


def _check_simclr(config):
    if config.augmentation:
        raise ValueError(
            "augmentation must be empty for kind simclr, whose views are SimCLR's; it "
            f"is {config.augmentation.to_dict()}"
        )
    if not config.temperature > 0:
        raise ValueError(f"temperature {config.temperature} must be more than 0")
    simclr_augmentation.draw_distortion([0, 0], config.strength)


def _simclr(config, model, examples, tokenizer, image_size, seed):
    """As `_supervised`."""
    trainer = _simclr_trainer(config, model, examples, seed)
    fields = {}
    if config.online_probe:
        fields["labels"] = batches.label_loader(examples)
    return trainer, fields


def _simclr_trainer(config, model, examples, seed=0):
    return SimCLRTrainer(
        model,
        config.rules,
        config.temperature,
        config.head_layers,
        config.head_dim,
        len(examples.label_names) if config.online_probe else 0,
        config.microbatch_image,
        config.batch_norm,
        seed,
        config.rematerialization,
    )


def _contrastive(config, model, examples, tokenizer, image_size, seed):
    """As `_supervised`."""
    trainer = _contrastive_trainer(config, model, seed)
    choose = batches.caption_chooser(examples, seed)

    def of_captions(rows):
        load = batches.row_loader(rows)
        return lambda step, indices: load(step, choose(step, indices))

    captions = of_captions(examples.captions)
    fields = {"token_ids": lambda step, indices: tokenizer(captions(step, indices))}
    if config.exclude_equal_captions:
        fields["caption_ids"] = of_captions(
            batches.number_captions(examples.captions, tokenizer)
        )
    if not trainer.trains_images:
        logging.info("the image encoder is frozen: embedding all training images once")
        embeddings = features.embed_images(model, examples, image_size)
        fields["image_embedding"] = batches.row_loader(embeddings)
    num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
    form = "dense" if is_dense(config.batch_size, num_replicas) else "streaming"
    logging.info("%s loss of %d pairs", form, config.batch_size)
    if config.accumulate == "slots":
        logging.info("second moments by the spread of the halves of each microbatch")
    return trainer, fields


def _contrastive_trainer(config, model, seed=0):
    return ContrastiveTrainer(
        model,
        config.rules,
        config.microbatch_image,
        config.microbatch_text,
        config.batch_norm,
        config.accumulate,
        seed,
        config.rematerialization,
    )


_KINDS = {
    "supervised": _supervised,
    "contrastive": _contrastive,
    "simclr": _simclr,
}
