"""What a step costs by strategy, as BASIC's Table 2 has it, scaled to this machine.

Data parallelism with all activations; pipelining, that is microbatches whose gradients
are added up (Algorithm 1); weights split over the devices (SPMD); and SPMD whose norms,
activations and attention are computed again. Devices are parts of this machine's CPU,
or its GPUs: `--device gpu`. A step that needs more than `--memory_limit_mb` of the main
memory, or more than its GPUs have, is a row without times.

Example:
  python -m experiments.studies.step_cost --output runs/step_cost --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import ctypes
import itertools
import pathlib
import resource
import time

import keras
import numpy as np
import tensorflow as tf
from absl import flags
from matplotlib import figure

from basic_tf import memory
from basic_tf.models import zoo
from basic_tf.optimizers import adafactorw
from basic_tf.training import (
    contrastive_trainer,
    distribution,
    mesh,
    microbatching,
    sharding,
)
from experiments.studies import fresh_process, page

STRATEGIES = {  # microbatch of each device, 0 for none; rematerialization
    "data_parallel": (0, "none"),
    "pipelining": (16, "none"),
    "spmd": (0, "none"),
    "spmd_remat": (0, "weightless"),
}
SIZES = {  # of `basic_nano`'s image encoder
    "small": {},
    "medium": {"depths": (2, 2, 2, 4, 2), "widths": (32, 128, 192, 256, 256)},
}
BATCH_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
QUICK = (256,)
VOCABULARY, LENGTH, IMAGE_SIZE = 400, 16, 32
REPETITIONS, ENOUGH_SECONDS = 3, 20  # of a step: so many, or fewer where they are long

_DEVICE = flags.DEFINE_enum("device", "cpu", ["cpu", "gpu"], "What to run on.")
_NUM_DEVICES = flags.DEFINE_integer(
    "num_devices", 2, "Devices that share a step.", lower_bound=1
)
_BATCH_SIZES = flags.DEFINE_multi_integer(
    "batch_sizes", BATCH_SIZES, "Pairs of a step; may be given several times."
)
_MEMORY_LIMIT = flags.DEFINE_integer(
    "memory_limit_mb", 16000, "What a step may take of the main memory, beside weights."
)


def main(output, quick):
    given = {
        "device": _DEVICE.value,
        "num_devices": _NUM_DEVICES.value,
        "memory_limit_mb": _MEMORY_LIMIT.value,
    }
    rows = [
        fresh_process.measure(
            {"size": size, "strategy": strategy, "batch_size": batch_size} | given
        )
        for size, batch_size, strategy in _cases(
            list(SIZES)[:1] if quick else SIZES,
            QUICK if quick else _BATCH_SIZES.value,
            _NUM_DEVICES.value,
        )
    ]
    page.write(output, "Cost of a step", _summary(rows), rows, [_plot(rows)])
    print(_summary(rows))


def _cases(sizes, batch_sizes, num_devices):
    """`(size, batch size, strategy)` of each row.

    Raises:
        ValueError: for a number of devices that does not divide every batch.
    """
    for batch_size in batch_sizes:
        microbatching.check_size("num_devices", num_devices, batch_size)
    return list(itertools.product(sizes, batch_sizes, STRATEGIES))


def _measure(strategy, size, batch_size, device, num_devices, memory_limit_mb):
    if device == "cpu":
        tf.config.set_visible_devices([], "GPU")
        distribution.split_cpu(num_devices)
    make = _on_mesh if strategy.startswith("spmd") else _replicated
    forward, step = make(*STRATEGIES[strategy], size, batch_size, num_devices)
    held = memory
    if device == "gpu":  # which refuses what goes beyond its own
        held = memory.OfGpus(num_devices)
    else:
        _limit_memory(memory_limit_mb)
    try:
        forward_seconds, _ = _take(forward, held)
        total_seconds, peak = _take(step, held)
    except tf.errors.ResourceExhaustedError:
        return {"outcome": "out of memory"} | dict.fromkeys(
            ("forward_seconds", "backward_seconds", "total_seconds", "peak_memory_mb")
        )
    return {
        "outcome": "ran",
        "forward_seconds": round(forward_seconds, 4),
        "backward_seconds": round(total_seconds - forward_seconds, 4),
        "total_seconds": round(total_seconds, 4),
        "peak_memory_mb": round(peak / num_devices, 1),
    }


def _limit_memory(megabytes):
    """Lets allocations fail that would take this process further than that."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _take(step, held):
    """Seconds of the fastest of some steps, and the MB that one takes at its peak.

    Args:
        step: of no arguments.
        held: `basic_tf.memory`, or what counts as it does.
    """
    step()  # compiles
    ctypes.CDLL(None).malloc_trim(0)  # what compiling took is no part of a step
    before, seconds = held.forget_peak(), []
    while len(seconds) < REPETITIONS and sum(seconds) < ENOUGH_SECONDS:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return min(seconds), held.peak_memory_mb() - before


def _trainer(microbatch_size, rematerialization, size):
    keras.utils.set_random_seed(0)
    configuration = zoo.configuration("basic_nano")
    configuration["image_encoder"] |= SIZES[size] | {"image_size": IMAGE_SIZE}
    model = zoo.build(configuration, VOCABULARY)
    trainer = contrastive_trainer.ContrastiveTrainer(
        model,
        microbatch_image=microbatch_size,
        microbatch_text=microbatch_size,
        rematerialization=rematerialization,
    )
    optimizer = adafactorw.AdaFactorW(1e-4)
    optimizer.build(trainer.trained_variables)
    trainer.compile(optimizer=optimizer, jit_compile=False)
    return trainer


def _forward_of(trainer):
    def forward(batch):
        images, texts = (each.embeddings for each in trainer.embed(batch))
        log_scale = tf.convert_to_tensor(trainer.dual_encoder.log_scale.value)
        loss, _ = contrastive_trainer.contrastive(images, texts, log_scale)
        return {"loss": loss}

    return forward


def _batch(batch_size):
    rng = np.random.default_rng(0)
    shape = (batch_size, IMAGE_SIZE, IMAGE_SIZE, 3)
    token_ids = rng.integers(1, VOCABULARY, (batch_size, LENGTH))
    return {
        "image": rng.random(shape, np.float32),
        "token_ids": token_ids.astype(np.int32),
    }


def _replicated(microbatch_size, rematerialization, size, batch_size, count):
    """Forward half and step, on replicas of a `tf.distribute` strategy."""
    strategy = distribution.make_strategy("mirrored" if count > 1 else "default")
    of_replica = batch_size // count
    microbatch_size = min(microbatch_size, of_replica)
    with strategy.scope():
        trainer = _trainer(microbatch_size, rematerialization, size)
    batch = _batch(batch_size)

    def part(context):
        start = context.replica_id_in_sync_group * of_replica
        return {
            name: tf.constant(value[start : start + of_replica])
            for name, value in batch.items()
        }

    parts = strategy.experimental_distribute_values_from_function(part)

    def of(function):
        run = tf.function(lambda parts: strategy.run(function, (parts,)))

        def take():
            loss = strategy.experimental_local_results(run(parts)["loss"])
            return [value.numpy() for value in loss]  # waits for it

        return take

    return of(_forward_of(trainer)), of(trainer.train_step)


def _on_mesh(microbatch_size, rematerialization, size, batch_size, count):
    """Forward half and step, on a mesh."""
    devices = mesh.make_mesh(f"model:{count}")
    with tf.device("CPU:0"):
        trainer = _trainer(microbatch_size * count, rematerialization, size)
        batch = _batch(batch_size)
        forward = sharding.ShardedStep(trainer, devices, step=_forward_of(trainer))
        step = sharding.ShardedStep(trainer, devices)
    return lambda: forward(batch), lambda: step(batch)


def _summary(rows):
    parts = []
    for row in rows:
        if row["outcome"] != "ran":
            name, size = row["strategy"], row["size"]
            parts.append(f"{name} of {row['batch_size']} pairs ({size}) needs more.")
    for size in dict.fromkeys(row["size"] for row in rows):
        parts += _compared([row for row in rows if row["size"] == size])
    return " ".join(
        [
            "Seconds of the fastest step, and MB a device at its peak over what rests "
            "between steps. In BASIC's Table 2, with 2^20 pairs and the medium model, "
            "SPMD takes 8,361 ms and 15.4 GB, pipelining 9,781 ms and 12.6 GB.",
            *parts,
        ]
    )


def _compared(rows):
    """Sentences on the largest batch of a size of models that fits in one piece."""
    ran = [row for row in rows if row["outcome"] == "ran"]
    bases = [row for row in ran if row["strategy"] == "data_parallel"]
    if not bases:
        return
    base = max(bases, key=lambda row: row["batch_size"])
    for row in ran:
        if row["batch_size"] != base["batch_size"] or row is base:
            continue
        ratio = row["total_seconds"] / base["total_seconds"]
        yield (
            f"{row['strategy']} of {row['batch_size']} pairs ({row['size']}) takes "
            f"{ratio:.2f} times the time of data_parallel, and {row['peak_memory_mb']} "
            f"in place of {base['peak_memory_mb']} MB a device."
        )


def _plot(rows):
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    plot = figure.Figure(figsize=(8, 3 * len(sizes)))
    fields = {"total_seconds": "seconds a step", "peak_memory_mb": "MB a device"}
    panels = plot.subplots(len(sizes), 2, squeeze=False)
    for panels_of_size, size in zip(panels, sizes, strict=True):
        for axes, (field, label) in zip(panels_of_size, fields.items(), strict=True):
            _draw(axes, [row for row in rows if row["size"] == size], field)
            axes.set_ylabel(f"{label}, {size}")
    panels[0, -1].legend()
    plot.tight_layout()
    return plot


def _draw(axes, rows, field):
    """A line for each strategy, which ends where memory does."""
    for strategy in STRATEGIES:
        chosen = [row for row in rows if row["strategy"] == strategy]
        sizes = [row["batch_size"] for row in chosen]
        axes.plot(sizes, [row[field] or np.nan for row in chosen], "o-", label=strategy)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("batch size")


if __name__ == "__main__":
    fresh_process.run(main, _measure)
