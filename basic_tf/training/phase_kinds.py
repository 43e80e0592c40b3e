"""The kinds of phases (BASIC section 8): what each trains, and on what.

1. `supervised`: the image encoder alone, softmax over the names.
2. `contrastive` with an image encoder that `rules` freeze: its embeddings of the
   training images are computed once.
3. `contrastive` with all variables trained: both encoders together.

In place of the first, `simclr` trains the image encoder without names (SimCLR).
"""

import tensorflow as tf
from absl import logging

from basic_tf.data import batches, simclr_augmentation
from basic_tf.evaluation import features
from basic_tf.training.contrastive_trainer import ContrastiveTrainer, is_dense
from basic_tf.training.simclr_trainer import SimCLRTrainer
from basic_tf.training.supervised_trainer import SupervisedTrainer


def check_name(kind):
    """Refuses a kind that there is not.

    Raises:
        ValueError: naming those that there are.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(_KINDS)}")


def examples_of(config, examples):
    """Those of the examples that a phase trains on: the labelled ones, or all."""
    return examples.labelled() if _needs_labels(config) else examples


def check(config, model, examples):
    """Refuses what a phase of a kind cannot train with.

    Args:
        config: see `phases.make_phase`.
        model: `DualEncoder`.
        examples: from `examples_of`.

    Raises:
        ValueError: with the field, its value, and what would do.
    """
    if _needs_labels(config) and not examples.label_sets:
        why = "kind supervised" if config.kind == "supervised" else "online_probe"
        raise ValueError(f"{why} needs labelled examples")
    if config.kind == "simclr":
        _check_simclr(config)
    make_trainer, _ = _KINDS[config.kind]
    trainer = make_trainer(config, model, examples)
    embeds_once = config.kind == "contrastive" and not trainer.trains_images
    if embeds_once and config.augmentation:
        raise ValueError(
            "augmentation must be empty where the image encoder is frozen, as it "
            f"embeds every image once; it is {config.augmentation.to_dict()}"
        )


def make(config, model, examples, tokenizer, image_size, seed):
    """The trainer of a phase, and the fields of its batches but for the images.

    Args:
        As those of `phases.make_phase`.

    Returns:
        `(trainer, fields)`, these as `batches.training_batches` takes them. With
        `"image_embedding"` among them the trainer takes no images.
    """
    make_trainer, make_fields = _KINDS[config.kind]
    trainer = make_trainer(config, model, examples, seed)
    return trainer, make_fields(config, trainer, examples, tokenizer, image_size, seed)


def images(config, examples, image_size, indices_by_step, seed):
    """The images of the steps, as a phase augments them; two views for `simclr`."""
    if config.kind == "simclr":
        return batches.training_views(
            examples, image_size, indices_by_step, seed, config.strength
        )
    return batches.training_images(
        examples, image_size, indices_by_step, seed, config.augmentation.to_dict()
    )


def _needs_labels(config):
    """Whether a phase trains on labelled examples alone."""
    return config.kind == "supervised" or config.get("online_probe", False)


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


def _supervised_fields(config, trainer, examples, tokenizer, image_size, seed):
    return {"labels": batches.label_loader(examples, config.label_balance)}


def _check_simclr(config):
    if config.augmentation:
        raise ValueError(
            "augmentation must be empty for kind simclr, whose views are SimCLR's; it "
            f"is {config.augmentation.to_dict()}"
        )
    if not config.temperature > 0:
        raise ValueError(f"temperature {config.temperature} must be more than 0")
    simclr_augmentation.draw_distortion([0, 0], config.strength)


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


def _simclr_fields(config, trainer, examples, tokenizer, image_size, seed):
    return {"labels": batches.label_loader(examples)} if config.online_probe else {}


def _contrastive_trainer(config, model, examples, seed=0):
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


def _contrastive_fields(config, trainer, examples, tokenizer, image_size, seed):
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
        embeddings = features.embed_images(trainer.dual_encoder, examples, image_size)
        fields["image_embedding"] = batches.row_loader(embeddings)
    num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
    form = "dense" if is_dense(config.batch_size, num_replicas) else "streaming"
    logging.info("%s loss of %d pairs", form, config.batch_size)
    if config.accumulate == "slots":
        logging.info("second moments by the spread of the halves of each microbatch")
    return fields


_KINDS = {  # what makes the trainer, what the fields
    "supervised": (_supervised_trainer, _supervised_fields),
    "contrastive": (_contrastive_trainer, _contrastive_fields),
    "simclr": (_simclr_trainer, _simclr_fields),
}
