"""Examples a second of every named encoder, and how near that is to matrix products.

Forward, and forward and backward, in float32; encoders and batches that would take half
of the machine's memory, or too long, are left out. Memory comes in large pages where
the C library gives them: otherwise fresh pages for every large value are much of a
step's time. A step of CoAtNet-0 is measured without them, too, and taken apart by kind
of operation, into `profile.json`. By the clock, so the machine should have nothing else
to do.

Example:
  python -m experiments.studies.encoder_speed --output runs/encoder_speed --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import json
import pathlib

import keras
import numpy as np
import tensorflow as tf
from matplotlib import figure

from basic_tf.models import zoo
from experiments.studies import fresh_process, op_profile, page

BATCH_SIZES = (1, 8, 32)
QUICK = ("coatnet_0", "text_basic_s")
PROFILED = ("coatnet_0", 16)  # encoder and batch, measured in every case
GOAL = 0.35  # share of a product's rate that its training step should have
LARGEST_STEP = 2e12  # operations, forward and backward
PRODUCT_SIZE = 2048
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # of glibc, from 2.35 on
# Operations of a pass for each multiply-add of the forward pass.
PASSES = {"forward": 2, "training": 6}


def main(output, quick):
    rows, left_out = [], []
    for name, batch_size, large_pages in _cases(quick):
        counted = zoo.describe(name)
        row = {
            "name": name,
            "multiply_adds": counted.multiply_adds,
            "batch_size": batch_size,
            "large_pages": large_pages,
        }
        if (name, batch_size) == PROFILED or _fits(counted, batch_size):
            environment = LARGE_PAGES if large_pages else {}
            rows.append(fresh_process.measure(row, environment))
        else:
            left_out.append(f"{name} in batches of {batch_size}")
    profile = rows[-1].pop("operations")
    summary = _summary(rows, left_out, profile)
    plots = [_plot(rows), op_profile.plot(profile)]
    page.write(output, "Speed of the encoders", summary, rows, plots)
    text = json.dumps(profile, indent=2)
    (pathlib.Path(output) / "profile.json").write_text(text)
    print(summary)


def _cases(quick):
    for name in QUICK if quick else zoo.ENCODERS:
        for batch_size in BATCH_SIZES[:1] if quick else BATCH_SIZES:
            yield name, batch_size, True
    yield *PROFILED, False
    yield *PROFILED, True


def _fits(counted, batch_size):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Weights and their gradients; activations, and as much for theirs.
    needed = 8 * counted.parameters + 2 * batch_size * counted.activation_bytes
    operations = PASSES["training"] * counted.multiply_adds * batch_size
    return needed < memory / 2 and operations < LARGEST_STEP


def _measure(name, multiply_adds, batch_size, large_pages):
    keras.utils.set_random_seed(0)
    encoder = zoo.encoder(name)
    examples = _examples(encoder, batch_size)
    encoder.build(examples.shape)
    weights = [variable.value for variable in encoder.trainable_variables]

    @tf.function
    def forward(examples):
        return encoder(examples, training=False)

    @tf.function
    def training(examples):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(encoder(examples, training=True))
        return total, tape.gradient(total, weights)

    # Before and after: what else the machine does slows one of them down.
    product_rate = _product_rate()
    taken = {
        kind: fresh_process.time_and_memory(function, (examples,), repetitions=3)
        for kind, function in (("forward", forward), ("training", training))
    }
    product_rate = max(product_rate, _product_rate())
    row = {"product_gflops": round(product_rate / 1e9, 1)}
    for kind, of_kind in taken.items():
        rate = PASSES[kind] * multiply_adds * batch_size / of_kind["seconds"]
        row |= {
            f"{kind}_per_second": round(batch_size / of_kind["seconds"], 2),
            f"{kind}_gflops": round(rate / 1e9, 1),
            f"{kind}_share": round(rate / product_rate, 3),
            f"{kind}_memory_mb": of_kind["step_memory_mb"],
        }
    if (name, batch_size) == PROFILED and large_pages:
        row["operations"] = op_profile.operations(training, (examples,))
    return row


def _product_rate():
    """Operations a second of a plain matrix product."""
    matrix = tf.random.normal((PRODUCT_SIZE, PRODUCT_SIZE))
    taken = fresh_process.time_and_memory(
        tf.function(tf.matmul), (matrix, matrix), repetitions=5
    )
    return 2 * PRODUCT_SIZE**3 / taken["seconds"]


def _examples(encoder, batch_size):
    rng = np.random.default_rng(0)
    if hasattr(encoder, "image_size"):
        shape = (batch_size, encoder.image_size, encoder.image_size, 3)
        return tf.constant(rng.random(shape, np.float32))
    shape = (batch_size, encoder.max_length)
    return tf.constant(rng.integers(1, encoder.vocabulary_size, shape), tf.int32)


def _summary(rows, left_out, profile):
    parts = [
        f"{row['name']} in batches of {row['batch_size']}: {row['forward_per_second']} "
        f"examples a second forward ({row['forward_share']:.0%} of a product's rate), "
        f"{row['training_per_second']} forward and backward "
        f"({row['training_share']:.0%})"
        for row in rows
        if row["name"] in QUICK and row["large_pages"]
    ]
    *_, small, large = rows
    share = large["training_share"]
    ratio = share / small["training_share"]  # each beside a product in its process
    return (
        "Rates in operations, two for each multiply-add of convolutions, matrix "
        "products and attention; backward counts twice the forward pass. Beside each, "
        f"in its process, a float32 product of {PRODUCT_SIZE} x {PRODUCT_SIZE} "
        f"matrices. {'; '.join(parts)}. Too large: {', '.join(left_out) or 'none'}. "
        f"The training step of {PROFILED[0]} in batches of {PROFILED[1]} is "
        f"{'at' if share >= GOAL else 'below'} the goal of {GOAL:.0%} of a product's "
        f"rate, {ratio:.2f} times that without large pages "
        f"({small['training_share']:.0%}); its operations' time goes to "
        f"{op_profile.summary(profile)}."
    )


def _plot(rows):
    plot = figure.Figure(figsize=(8, 4))
    axes = plot.subplots()
    for batch_size in sorted({row["batch_size"] for row in rows}):
        of_size = [row for row in rows if row["batch_size"] == batch_size]
        names = [row["name"] for row in of_size]
        shares = [row["training_share"] for row in of_size]
        axes.plot(names, shares, "o", label=f"batch of {batch_size}")
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylabel("forward and backward,\nshare of a product's rate")
    axes.legend()
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
