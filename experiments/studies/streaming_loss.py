"""Time and memory of the contrastive loss with its gradients: dense, streaming, matmul.

`matmul` is the four matrix products of the streaming form alone, in the same blocks.

Example:
  python -m experiments.studies.streaming_loss --output runs/streaming_loss --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import math

import numpy as np
import tensorflow as tf
from matplotlib import figure

from basic_tf import losses, slices, streaming_loss
from experiments.studies import fresh_process, page

DIM = 512
DENSE, STREAMING, MATMUL = "dense", "streaming", "matmul"


def main(output, quick):
    sizes = {DENSE: [1024, 2048, 4096], STREAMING: [1024, 2048, 4096], MATMUL: [4096]}
    if not quick:
        sizes[DENSE] += [8192, 16384]
        sizes[STREAMING] += [8192, 16384, 32768, 65536]
        sizes[MATMUL] += [16384]
    rows = [
        fresh_process.measure({"form": form, "batch_size": size})
        for form, batch_sizes in sizes.items()
        for size in batch_sizes
    ]
    page.write(
        output, "The contrastive loss in blocks", _summary(rows), rows,
        [_plot(rows)],
    )  # fmt: skip
    print(_summary(rows))


def _measure(form, batch_size):
    rng = np.random.default_rng(0)
    images, texts = (
        tf.math.l2_normalize(tf.constant(x, tf.float32), axis=1)
        for x in rng.normal(size=(2, batch_size, DIM)).astype(np.float32)
    )
    texts = tf.math.l2_normalize(texts + 0.7 * images, axis=1)
    log_scale = tf.constant(math.log(1 / 0.07))

    @tf.function
    def with_gradients(*tensors):
        forms = {
            DENSE: losses.contrastive_loss,
            STREAMING: streaming_loss.streaming_contrastive_loss,
        }
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            loss, _ = forms[form](*tensors)
        return loss, tape.gradient(loss, tensors)

    function = _products if form == MATMUL else with_gradients
    return fresh_process.time_and_memory(
        function,
        (images, texts, log_scale),
        repetitions=3 if batch_size <= 16384 else 1,
    )


@tf.function
def _products(images, texts, log_scale):
    """Logits, and logits again with both gradients, as the two sweeps make them."""
    batch_size = images.shape[0]
    size = slices.largest_divisor(
        batch_size, streaming_loss.BLOCK_ELEMENTS // batch_size
    )
    scale = tf.exp(log_scale)

    def logits(block):
        part = slices.take(images, block, size)
        return part, tf.matmul(texts, part * scale, transpose_b=True)

    def first(block, total):
        return block + 1, total + logits(block)[1][0, 0]

    def second(block, by_images, by_texts):
        part, matrix = logits(block)
        by_image = tf.matmul(matrix, texts, transpose_a=True)
        by_texts += tf.matmul(matrix, part)
        return block + 1, by_images.write(block, by_image), by_texts

    (total,) = slices.repeat(batch_size // size, first, 0.0)
    by_images = tf.TensorArray(tf.float32, batch_size // size)
    by_images, by_texts = slices.repeat(
        batch_size // size, second, by_images, tf.zeros_like(texts)
    )
    return total, by_images.concat(), by_texts


def _find(rows, form, batch_size):
    for row in rows:
        if (row["form"], row["batch_size"]) == (form, batch_size):
            return row


def _summary(rows):
    size = max(row["batch_size"] for row in rows if row["form"] == MATMUL)
    ours, products, dense = (
        _find(rows, form, size) for form in (STREAMING, MATMUL, DENSE)
    )
    largest = max((r for r in rows if r["form"] == STREAMING), key=_batch_size)
    return (
        f"Loss and gradients of {size} pairs, D = {DIM}: the streaming form takes "
        f"{ours['cpu_seconds'] / products['cpu_seconds']:.2f} times the processor time "
        f"of its four matrix products alone and {ours['step_memory_mb']} MB; the dense "
        f"form {dense['cpu_seconds'] / ours['cpu_seconds']:.2f} times its time and "
        f"{dense['step_memory_mb']} MB. {largest['batch_size']} pairs take "
        f"{largest['cpu_seconds']:.0f} processor seconds and "
        f"{largest['step_memory_mb']} MB."
    )


def _batch_size(row):
    return row["batch_size"]


def _plot(rows):
    plot = figure.Figure(figsize=(8, 3))
    for axes, field, label in zip(
        plot.subplots(1, 2),
        ("cpu_seconds", "step_memory_mb"),
        ("processor seconds", "memory over the inputs, MB"),
        strict=True,
    ):
        for form in (DENSE, STREAMING, MATMUL):
            of_form = [row for row in rows if row["form"] == form]
            sizes = [row["batch_size"] for row in of_form]
            axes.loglog(sizes, [row[field] for row in of_form], "o-", label=form)
        axes.set_xlabel("batch size")
        axes.set_ylabel(label)
    axes.legend()
    plot.tight_layout()
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
