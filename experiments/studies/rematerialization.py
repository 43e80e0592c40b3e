"""What activations computed again save and cost in a CoAtNet step (BASIC section 5).

Forward and backward of two CoAtNets on random images, with everything kept, with the
outputs of layers with weights kept, and with the inputs of blocks kept. Of a step's
peak memory the gradients are no activations, and are taken off. Prints first what each
kind of block keeps of an image, as BASIC's figure 2 draws it.

Example:
  python -m experiments.studies.rematerialization --output runs/rematerialization
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from matplotlib import figure

from basic_tf.models import description, zoo
from basic_tf.models.values import values
from basic_tf.training import microbatching, rematerialization
from basic_tf.training.stateless_encoder import StatelessEncoder
from experiments.studies import fresh_process, page

ENCODERS = ("coatnet_0", "coatnet_1")  # the second as deep as BASIC-M's
IMAGE_SIZE = 128


def main(output, quick):
    # What is freed goes back to the system at once, and is not counted.
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(2**16)
    batch_size = 8 if quick else 32
    rows = [
        fresh_process.measure({"name": name, "mode": mode, "batch_size": batch_size})
        for name in (ENCODERS[:1] if quick else ENCODERS)
        for mode in rematerialization.MODES
    ]
    print("\n".join(block_map()))
    page.write(output, "Rematerialization", _summary(rows), rows, [_plot(rows)])
    print(_summary(rows))


def _measure(name, mode, batch_size):
    keras.utils.set_random_seed(0)
    encoder = zoo.encoder(name, image_size=IMAGE_SIZE)
    encoder.build((None, IMAGE_SIZE, IMAGE_SIZE, 3))
    stateless = StatelessEncoder(
        lambda images, training: encoder(images, training=training),
        encoder,
        encoder.trainable_variables,
        rematerialization=mode,
    )

    @tf.function
    def step(images):
        run = microbatching.encode(stateless, images, 0, 0)
        gradients, _ = run.backward(tf.ones_like(run.embeddings))
        return gradients

    shape = (batch_size, IMAGE_SIZE, IMAGE_SIZE, 3)
    images = tf.constant(np.random.default_rng(0).random(shape, np.float32))
    taken = fresh_process.time_and_memory(step, (images,), repetitions=4)
    gradients_mb = 4 * zoo.count_parameters(encoder) / 2**20
    return taken | {
        "activations_mb": round(taken["step_memory_mb"] - gradients_mb),
    }


def block_map():
    """Lines that say what each kind of block keeps of an image, in float32 bytes."""
    encoder = description.without_weights(
        lambda: zoo.encoder("coatnet_0"), (224, 224, 3)
    )
    shape, seen = (224, 224, 3), set()
    for block in encoder.stages:
        made = list(values(block, shape))
        kind = type(block).__name__, len(made)
        if kind not in seen:
            seen.add(kind)
            yield f"{block.name}, {type(block).__name__}:"
            for value in made:
                does = "kept" if value.weighted else "computed again"
                yield f"  {value.name} {value.shape}: {4 * value.size} bytes, {does}"
        shape = made[-1].shape


def _summary(rows):
    parts = [
        _of_encoder([row for row in rows if row["name"] == name])
        for name in dict.fromkeys(row["name"] for row in rows)
    ]
    return " ".join([*parts, "BASIC's cost 1.4 times the time."])


def _of_encoder(rows):
    none, *others = rows
    parts = [
        f"{row['mode']} saves "
        f"{1 - row['activations_mb'] / none['activations_mb']:.0%} of them for "
        f"{row['cpu_seconds'] / none['cpu_seconds']:.2f} times the processor time"
        for row in others
    ]
    return (
        f"{none['name']} on {none['batch_size']} images of {IMAGE_SIZE} pixels takes "
        f"{none['activations_mb']} MB for activations where all are kept; "
        f"{'; '.join(parts)}."
    )


def _plot(rows):
    plot = figure.Figure(figsize=(6, 3))
    axes = plot.subplots()
    names = [f"{row['mode']}\n{row['name']}" for row in rows]
    axes.bar(names, [row["activations_mb"] for row in rows])
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylabel("MB of activations")
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
