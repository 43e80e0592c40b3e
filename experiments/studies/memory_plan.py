"""Memory of a training step, planned beside measured, on a CPU.

Example:
  python -m experiments.studies.memory_plan --output runs/memory_plan --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from matplotlib import figure

from basic_tf import memory
from basic_tf.models import zoo
from basic_tf.optimizers import adafactorw
from basic_tf.training import contrastive_trainer, memory_plan
from experiments.studies import fresh_process, page

VOCABULARY = 400
ROWS = [
    ("basic_nano", memory_plan.DATA_PARALLEL, 128, 128, 64),
    ("basic_nano", memory_plan.PIPELINING, 256, 64, 64),
    ("basic_nano", memory_plan.DATA_PARALLEL, 256, 256, 64),
    ("basic_nano", memory_plan.SLOTS, 256, 64, 64),
    ("coatnet_0", memory_plan.DATA_PARALLEL, 64, 64, 64),
    ("coatnet_0", memory_plan.PIPELINING, 128, 32, 64),
    ("long_texts", memory_plan.DATA_PARALLEL, 128, 128, 32),
    ("long_texts", memory_plan.PIPELINING, 256, 64, 32),
]
NUM_QUICK = 2


def configuration_of(model, image_size):
    """`basic_nano`, or the same with one encoder that is larger than the other."""
    configuration = zoo.configuration("basic_nano")
    if model == "coatnet_0":
        configuration["image_encoder"] = dict(zoo.COATNETS["coatnet_0"])
    elif model == "long_texts":
        longer = {"num_layers": 4, "width": 256, "max_length": 64, "activation": "gelu"}
        configuration["text_encoder"] |= longer
    configuration["image_encoder"]["image_size"] = image_size
    return configuration


def main(output, quick):
    # What is freed goes back to the system at once, and is not counted: the heap of the
    # C library holds on to a tenth or two more.
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(2**16)
    names = "model", "strategy", "batch_size", "microbatch_size", "image_size"
    rows = []
    for row in ROWS[: NUM_QUICK if quick else None]:
        row = dict(zip(names, row, strict=True))
        planned = {"predicted_mb": round(_planned_bytes(**row) / 2**20)}
        rows.append(_compared(fresh_process.measure(row) | planned))
    page.write(output, "Planned memory", _summary(rows), rows, [_plot(rows)])
    print(_summary(rows))


def _compared(row):
    ratio = row["predicted_mb"] / row["measured_mb"]
    return row | {"ratio": round(ratio, 3)}


def _planned_bytes(model, strategy, batch_size, microbatch_size, image_size):
    """Bytes that a step takes beside what a process holds before it."""
    planner = memory_plan.Planner(
        configuration_of(model, image_size),
        batch_size,
        vocabulary_size=VOCABULARY,
        device_kind="cpu",
    )
    return planner.plan(strategy, microbatch_size).step_bytes


def _measure(model, strategy, batch_size, microbatch_size, image_size):
    keras.utils.set_random_seed(0)
    configuration = configuration_of(model, image_size)
    part = 0 if strategy == memory_plan.DATA_PARALLEL else microbatch_size
    trainer = contrastive_trainer.ContrastiveTrainer(
        zoo.build(configuration, VOCABULARY),
        microbatch_image=part,
        microbatch_text=part,
        accumulate="slots" if strategy == memory_plan.SLOTS else "buffer",
    )
    optimizer = adafactorw.AdaFactorW(1e-4)
    optimizer.build(trainer.trained_variables)
    trainer.compile(optimizer=optimizer, jit_compile=False)
    length = configuration["text_encoder"]["max_length"]
    batch = _random_batch(batch_size, image_size, length)
    step = tf.function(trainer.train_step)
    tf.nest.flatten(step(batch))[0].numpy()  # waits for it
    # What kernels and graphs take from their first step on is in `before`.
    before = memory.forget_peak()
    tf.nest.flatten(step(batch))[0].numpy()
    return {"measured_mb": memory.peak_memory_mb() - before}


def _random_batch(size, image_size, length):
    rng = np.random.default_rng(0)
    images = rng.random((size, image_size, image_size, 3), np.float32)
    token_ids = rng.integers(1, VOCABULARY, (size, length))
    return {"image": tf.constant(images), "token_ids": tf.constant(token_ids, tf.int32)}


def _summary(rows):
    ratios = [row["ratio"] for row in rows]
    furthest = max(rows, key=lambda row: abs(row["ratio"] - 1))
    return (
        "Memory that a step takes beside what the process holds between steps, as it "
        "was planned from the traced graph of each encoder, and as it was measured in "
        "a process of its own that gives back what is freed. Planned over measured: "
        f"{min(ratios):.2f} to {max(ratios):.2f}; the furthest is {furthest['model']}, "
        f"{furthest['strategy']}, {furthest['batch_size']} pairs: "
        f"{furthest['predicted_mb']} MB planned, {furthest['measured_mb']} MB measured."
    )


def _plot(rows):
    plot = figure.Figure(figsize=(4, 4))
    axes = plot.subplots()
    for model in dict.fromkeys(row["model"] for row in rows):
        chosen = [row for row in rows if row["model"] == model]
        measured = [row["measured_mb"] for row in chosen]
        planned = [row["predicted_mb"] for row in chosen]
        axes.loglog(measured, planned, "o", label=model)
    ends = [f(row["measured_mb"] for row in rows) for f in (min, max)]
    axes.loglog(ends, ends, color="gray", linewidth=0.5)
    axes.set_xlabel("measured, MB")
    axes.set_ylabel("planned, MB")
    axes.legend()
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
