"""Takes steps on a mesh and on one device, and writes what they leave into files.

`python sharded_steps.py FOLDER MESH CASE...`, of `CASES`, into `FOLDER/CASE.npz`. A
process of its own: devices are made once, and a process keeps to one mesh.
"""

import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from basic_tf.models import coatnet, dual_encoder, text_transformer
from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.optimizers.adamw import AdamW
from basic_tf.training import (
    contrastive_trainer,
    distribution,
    mesh,
    sharding,
    supervised_trainer,
)

BATCH_SIZE, STEPS, MIN_SPLIT_SIZE, DIM, CLASSES = 16, 5, 32, 8, 8
# Those without a gradient, which rounding would move: an optimizer takes its sign.
STILL = r"/key/bias$|/conv0/bias$|/block/norm/beta$"
RULES = (STILL, {"train": False}), (rf"^(?!.*({STILL}))", {})


@dataclasses.dataclass(frozen=True)
class Case:
    """What takes a step.

    Attributes:
        optimizer: its class.
        microbatch_size: 0 for none.
        rematerialization: see `rematerialization`.
        phase: "supervised" or "contrastive".
    """

    optimizer: Callable
    microbatch_size: int = 0
    rematerialization: str = "none"
    phase: str = "contrastive"


CASES = {
    "plain": Case(AdaFactorW),
    "microbatches": Case(AdamW, 8),
    "weightless": Case(AdamW, 8, "weightless"),
    "weightless in one piece": Case(AdamW, 0, "weightless"),
    "block": Case(AdaFactorW, 0, "block"),
    "supervised": Case(AdaFactorW, 8, phase="supervised"),
}


def main(folder, text, *names):
    sizes = mesh.parse(text)
    distribution.split_cpu(sizes[0] * sizes[1])
    devices = mesh.make_mesh(text, "CPU")
    # What it saves a step of this size, it takes many times to find.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    for name in names:
        case = CASES[name]
        values = steps_on(devices, case)
        expected = steps_of_one(case)
        np.savez(pathlib.Path(folder) / f"{name}.npz", **values, **expected)


def steps_on(devices, case):
    """What steps on a mesh leave, and what was before them."""
    trainer = make_trainer(case)
    values = values_of("start", trainer)
    step = sharding.ShardedStep(trainer, devices, min_size=MIN_SPLIT_SIZE)
    for batch in make_batches(case.phase):
        trainer.reset_metrics()
        logs = step(batch)
    step.store()
    parts = [stored.layout.sharding_specs for stored in step.stored]
    values["split"] = sum(mesh.MODEL in specs for specs in parts)
    values["share"] = step.device_bytes / step.whole_bytes
    return values | values_of("ours", trainer, logs)


def steps_of_one(case):
    """What the steps of one device leave."""
    trainer = make_trainer(case)
    step = tf.function(trainer.train_step, autograph=False)
    for batch in make_batches(case.phase):
        trainer.reset_metrics()
        logs = step(batch)
    return values_of("theirs", trainer, logs)


def values_of(whose, trainer, logs=()):
    model = trainer.dual_encoder
    trained = {id(v) for v in trainer.trained_variables}
    groups = {
        "weight": trainer.trained_variables,
        "frozen": [v for v in model.trainable_variables if id(v) not in trained],
        "statistic": model.non_trainable_variables,
        "slot": trainer.optimizer.variables[2:],  # after iterations and rate
    }
    values = {
        f"{whose} {group} {index:03d} {variable.path}": np.float32(variable.numpy())
        for group, variables in groups.items()
        for index, variable in enumerate(variables)
    }
    return values | {f"{whose} log {name}": np.float32(logs[name]) for name in logs}


def make_trainer(case):
    keras.utils.set_random_seed(0)
    images = coatnet.CoAtNet(
        depths=(2, 1, 1),
        widths=(4, 8, 8),
        strides=(2, 2, 1),
        blocks=("mbconv", "transformer"),
        embedding_dim=DIM,
        image_size=8,
        head_dim=4,
        name="images",
    )
    texts = text_transformer.TextTransformer(
        vocabulary_size=16,
        max_length=8,
        num_layers=1,
        width=8,
        num_heads=2,
        embedding_dim=DIM,
        name="texts",
    )
    model = dual_encoder.DualEncoder(images, texts, name="model")
    model.build()
    options = {
        "rules": RULES,
        "microbatch_image": case.microbatch_size,
        "rematerialization": case.rematerialization,
    }
    if case.phase == "supervised":
        trainer = supervised_trainer.SupervisedTrainer(model, CLASSES, **options)
    else:
        options["microbatch_text"] = case.microbatch_size
        trainer = contrastive_trainer.ContrastiveTrainer(model, **options)
    optimizer = case.optimizer(1e-2, decay=0.1, rules=RULES, momentum_dtype="float32")
    optimizer.build(trainer.trained_variables)
    trainer.compile(optimizer, jit_compile=False)
    return trainer


def make_batches(phase):
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        fields = {
            "image": rng.random((BATCH_SIZE, 8, 8, 3), np.float32),
            "token_ids": rng.integers(1, 16, (BATCH_SIZE, 8)).astype(np.int32),
            "labels": rng.integers(0, 2, (BATCH_SIZE, CLASSES)).astype(np.float32),
        }
        names = ("image", "labels" if phase == "supervised" else "token_ids")
        yield {name: fields[name] for name in names}


if __name__ == "__main__":
    main(*sys.argv[1:])
