"""A phase of a training run, made from its configuration: trainer, optimizer, data."""

import dataclasses
import functools
from collections.abc import Callable

import keras
from absl import logging

from basic_tf.data import augmentation as augmentations
from basic_tf.data import batches, example_order
from basic_tf.training import (
    checkpoints,
    distribution,
    phase_kinds,
    phase_optimizer,
    phase_sizes,
    sharding,
)


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
        phase_kinds.check_name(config.kind)
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
        examples = phase_kinds.examples_of(config, examples)
        example_order.batch_counts(examples.groups(), config.batch_size)
        phase_kinds.check(config, model, examples)
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
    examples = phase_kinds.examples_of(config, examples)
    _announce_batches(name, examples.groups(), config.batch_size)
    trainer, fields = phase_kinds.make(
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
    if "image_embedding" not in fields:
        images = phase_kinds.images(config, examples, image_size, indices_by_step, seed)
    return batches.training_batches(indices_by_step, fields, images)
