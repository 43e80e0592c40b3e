"""Takes steps with several replicas and writes the weights into files `NAME.npz`.

`python replicated_steps.py FOLDER 4`, or, with TF_CONFIG set, `... multi_worker`. A
process of its own: devices, and the groups of their collectives, are made once.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.training import contrastive_trainer, distribution, supervised_trainer
from tests.training import small_encoders

BATCH_SIZE, STEPS = 16, 2
ADAFACTORW_RATE, CLIP_NORM = 1e-2, 0.1


def main(folder, replicas):
    if replicas == "multi_worker":
        train(folder, "multi_worker", distribution.make_strategy("multi_worker"), 2)
        return
    distribution.split_cpu(int(replicas))
    mirrored = distribution.make_strategy("mirrored")
    # Microbatches of 2 on any number of replicas: the same ones.
    train(folder, f"contrastive_{replicas}", mirrored, 2)
    if replicas == "2":
        one = distribution.make_strategy("default")
        train(folder, "contrastive_1", one, 2)
        for mode in ("weightless", "block"):
            options = {"rematerialization": mode}
            train(folder, f"{mode}_2", mirrored, 2, **options)
        for count, strategy in ((1, one), (2, mirrored)):
            for accumulate in ("buffer", "slots"):
                train(
                    folder,
                    f"{accumulate}_{count}",
                    strategy,
                    2,
                    make_optimizer=adafactorw,
                    accumulate=accumulate,
                )
            options = {"make_optimizer": clipped}
            train(folder, f"clipped_{count}", strategy, 2, **options)
            options = {"make_optimizer": adafactorw, "supervised": True, "skips": True}
            train(folder, f"skipped_{count}", strategy, 2, **options)
            train(folder, f"supervised_{count}", strategy, 2, supervised=True)
            size = 16 if count == 1 else 4
            train(folder, f"global_{count}", strategy, size, "global", dropout=0.0)


def sgd():
    return keras.optimizers.SGD(0.05)


def adafactorw():
    return AdaFactorW(ADAFACTORW_RATE, decay=0.1, momentum_dtype="bfloat16")


def clipped():
    return AdaFactorW(
        ADAFACTORW_RATE, momentum_dtype="bfloat16", global_clipnorm=CLIP_NORM
    )


def train(
    folder,
    name,
    strategy,
    size,
    batch_norm="microbatch",
    dropout=0.3,
    supervised=False,
    make_optimizer=sgd,
    accumulate="buffer",
    skips=False,
    rematerialization="none",
):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = small_encoders.build(dropout)
        if supervised:
            model.image_encoder.embedding_dim = small_encoders.DIM
            ours = supervised_trainer.SupervisedTrainer(
                model, 3, microbatch_image=size, batch_norm=batch_norm
            )
        else:
            ours = contrastive_trainer.ContrastiveTrainer(
                model,
                microbatch_image=size,
                microbatch_text=size,
                batch_norm=batch_norm,
                accumulate=accumulate,
                rematerialization=rematerialization,
            )
        ours.compile(make_optimizer(), jit_compile=False)
        ours.optimizer.build(ours.trained_variables)
    data = in_batches(make_data()).repeat()
    if skips:
        bad = make_data()
        bad["image"][-1] = np.nan  # on the last replica alone
        data = in_batches(bad).concatenate(data)
    history = ours.fit(data, steps_per_epoch=STEPS, shuffle=False, verbose=0).history
    kept = [v for v in model.variables if "seed" not in v.path]
    values = {f"{i} {v.name}": v.numpy() for i, v in enumerate(kept)}
    for i, slot in enumerate(ours.optimizer.variables[2:]):  # after iterations and rate
        kind = slot.path.split("_")[-1]
        values[f"slot {i} {kind}"] = np.float32(slot.numpy())
    values["loss"] = np.array(history["loss"])
    values["skipped"] = np.array(history["non_finite_steps"])
    if distribution.is_chief():
        np.savez(pathlib.Path(folder) / f"{name}.npz", **values)


def in_batches(data):
    dataset = tf.data.Dataset.from_tensor_slices(data)
    return dataset.batch(BATCH_SIZE, drop_remainder=True)


def make_data():
    rng = np.random.default_rng(0)
    size = small_encoders.IMAGE_SIZE
    return {
        "image": rng.random((BATCH_SIZE, size, size, 3), np.float32),
        "token_ids": rng.integers(0, small_encoders.VOCABULARY, (BATCH_SIZE, 4)),
        "labels": np.eye(3, dtype=np.float32)[rng.integers(0, 3, BATCH_SIZE)],
        "caption_ids": rng.integers(0, 12, BATCH_SIZE),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
