"""What a step in microbatches costs, and the memory it saves (BASIC section 4).

Trains `basic_nano` on random pairs: full batches while they fit comfortably, and
batches of any size in microbatches.

Example:
  python -m experiments.studies.micro_batching --output runs/micro_batching --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


import keras
import numpy as np
import tensorflow as tf
from matplotlib import figure

from basic_tf.models import zoo
from basic_tf.optimizers import adafactorw
from basic_tf.training import contrastive_trainer
from experiments.studies import fresh_process, page

FULL, MICROBATCHED = "full", "microbatched"
VOCABULARY, LENGTH = 400, 16
NUM_EXAMPLES = 2048


def main(output, quick):
    rows = [_row(FULL, 128, 128), _row(MICROBATCHED, 128, 32)]
    rows += [_row(FULL, 256, 256), _row(MICROBATCHED, 256, 32)]
    if not quick:
        rows += [_row(MICROBATCHED, 128, size) for size in (16, 64)]
        rows += [_row(MICROBATCHED, size, 32) for size in (512, 1024)]
        rows.append(_row(MICROBATCHED, 128, 32, "global"))
    image_size = {"image_size": 32 if quick else 64}
    rows = [fresh_process.measure(row | image_size) for row in rows]
    page.write(output, "Microbatches", _summary(rows), rows, [_plot(rows)])
    print(_summary(rows))


def _row(mode, batch_size, microbatch_size, batch_norm="microbatch"):
    return {
        "mode": mode,
        "batch_size": batch_size,
        "microbatch_size": microbatch_size,
        "batch_norm": batch_norm,
    }


def _measure(mode, batch_size, microbatch_size, batch_norm, image_size):
    keras.utils.set_random_seed(0)
    configuration = zoo.configuration("basic_nano")
    configuration["image_encoder"]["image_size"] = image_size
    model = zoo.build(configuration, VOCABULARY)
    size = 0 if mode == FULL else microbatch_size
    trainer = contrastive_trainer.ContrastiveTrainer(
        model,
        microbatch_image=size,
        microbatch_text=size,
        batch_norm=batch_norm,
    )
    optimizer = adafactorw.AdaFactorW(1e-4)
    optimizer.build(trainer.trained_variables)
    trainer.compile(optimizer=optimizer, jit_compile=False)
    rng = np.random.default_rng(0)
    shape = (batch_size, image_size, image_size, 3)
    batch = {
        "image": tf.constant(rng.random(shape, np.float32)),
        "token_ids": tf.constant(
            rng.integers(1, VOCABULARY, (batch_size, LENGTH)), tf.int32
        ),
    }
    step = tf.function(trainer.train_step)
    # As many examples, and allocations, for all: the heap grows into its last size.
    repetitions = max(2, NUM_EXAMPLES // batch_size)
    return fresh_process.time_and_memory(step, (batch,), repetitions)


def _find(rows, *wanted):
    for row in rows:
        if row.items() >= _row(*wanted).items():
            return row


def _summary(rows):
    parts = []
    for row in rows:
        other = _find(rows, MICROBATCHED, row["batch_size"], 32)
        if row["mode"] == FULL:
            parts.append(
                f"Of {row['batch_size']} pairs, a step in microbatches of 32 takes "
                f"{other['seconds'] / row['seconds']:.2f} times the time of a full one "
                f"({other['cpu_seconds'] / row['cpu_seconds']:.2f} times the processor "
                f"time) and {other['step_memory_mb']} in place of "
                f"{row['step_memory_mb']} MB."
            )
    largest_batch_size = max(row["batch_size"] for row in rows)
    largest = _find(rows, MICROBATCHED, largest_batch_size, 32)
    smallest = _find(rows, MICROBATCHED, 128, 32)
    whole_norm = _find(rows, MICROBATCHED, 128, 32, "global")
    if whole_norm:
        parts.append(
            "With batch norm over the whole batch, 128 pairs take "
            f"{whole_norm['cpu_seconds'] / smallest['cpu_seconds']:.1f} times the "
            "processor time that they take with batch norm over each microbatch."
        )
    ratio = largest["step_memory_mb"] / smallest["step_memory_mb"]
    parts.append(
        f"{largest['batch_size']} pairs take {ratio:.2f} times the memory of 128, both "
        "in microbatches of 32."
    )
    return " ".join(parts)


def _plot(rows):
    plot = figure.Figure(figsize=(8, 3))
    for axes, field, label in zip(
        plot.subplots(1, 2),
        ("step_memory_mb", "seconds"),
        ("memory of a step, MB", "seconds a step"),
        strict=True,
    ):
        for mode, sizes in ((FULL, (128, 256)), (MICROBATCHED, (32,))):
            chosen = [
                row
                for row in rows
                if row["mode"] == mode
                and row["microbatch_size"] in sizes
                and row["batch_norm"] == "microbatch"
            ]
            batch_sizes = [row["batch_size"] for row in chosen]
            axes.loglog(batch_sizes, [row[field] for row in chosen], "o-", label=mode)
        axes.set_xlabel("batch size")
        axes.set_ylabel(label)
    axes.legend()
    plot.tight_layout()
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
