"""Takes steps on a mesh and on one device, and writes what they leave into a file.

`python sharded_steps.py FILE MESH CASE`, CASE of `CASES`. A process of its own: devices
are made once, and a process keeps to one mesh.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from basic_tf.models import coatnet, dual_encoder, text_transformer
from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.optimizers.adamw import AdamW
from basic_tf.training import contrastive_trainer, distribution, mesh, sharding

BATCH_SIZE, STEPS, MIN_SPLIT_SIZE = 16, 5, 32
CASES = {
    "plain": (AdaFactorW, 0, "none"),
    "microbatches": (AdamW, 8, "none"),
    "weightless": (AdamW, 0, "weightless"),
    "block": (AdaFactorW, 0, "block"),
}
# Those without a gradient, which rounding would move: an optimizer takes its sign.
RULES = (
    (r"/key/bias$|/conv0/bias$|/block/norm/beta$", {"train": False}),
    (r"^(?!.*(/key/bias$|/conv0/bias$|/block/norm/beta$))", {}),
)


def main(file, text, case):
    sizes = mesh.parse(text)
    distribution.split_cpu(sizes[0] * sizes[1])
    ours, theirs = make_trainer(*CASES[case]), make_trainer(*CASES[case])
    values = {f"start {k}": v for k, v in values_of(ours).items()}
    step = sharding.ShardedStep(
        ours, mesh.make_mesh(text, "CPU"), min_size=MIN_SPLIT_SIZE
    )
    other_step = tf.function(theirs.train_step)
    for batch in make_batches():
        logs, other_logs = step(batch), other_step(batch)
    step.store()
    for name, trainer, last in (("ours", ours, logs), ("theirs", theirs, other_logs)):
        values |= {f"{name} {k}": v for k, v in values_of(trainer).items()}
        values |= {f"{name} log {k}": np.float32(v) for k, v in last.items()}
    parts = [stored.layout.sharding_specs for stored in step.stored]
    values["split"] = sum(mesh.MODEL in specs for specs in parts)
    values["share"] = step.device_bytes / step.whole_bytes
    np.savez(file, **values)


def values_of(trainer):
    model, optimizer = trainer.dual_encoder, trainer.optimizer
    groups = {"weight": model.trainable_variables}
    groups["statistic"] = model.non_trainable_variables
    groups["slot"] = optimizer.variables[2:]  # after iterations and rate
    return {
        f"{group} {index:03d} {variable.path}": np.float32(variable.numpy())
        for group, variables in groups.items()
        for index, variable in enumerate(variables)
    }


def make_trainer(optimizer_class, microbatch_size, rematerialization):
    keras.utils.set_random_seed(0)
    images = coatnet.CoAtNet(
        depths=(2, 1, 1),
        widths=(4, 8, 8),
        strides=(2, 2, 1),
        blocks=("mbconv", "transformer"),
        embedding_dim=8,
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
        embedding_dim=8,
        name="texts",
    )
    model = dual_encoder.DualEncoder(images, texts, name="model")
    model.build()
    trainer = contrastive_trainer.ContrastiveTrainer(
        model,
        RULES,
        microbatch_image=microbatch_size,
        microbatch_text=microbatch_size,
        rematerialization=rematerialization,
    )
    optimizer = optimizer_class(1e-2, decay=0.1, rules=RULES, momentum_dtype="float32")
    optimizer.build(trainer.trained_variables)
    trainer.compile(optimizer, jit_compile=False)
    return trainer


def make_batches():
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        yield {
            "image": rng.random((BATCH_SIZE, 8, 8, 3), np.float32),
            "token_ids": rng.integers(1, 16, (BATCH_SIZE, 8)).astype(np.int32),
        }


if __name__ == "__main__":
    main(*sys.argv[1:])
