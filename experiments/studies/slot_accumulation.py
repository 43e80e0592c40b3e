"""How exact slot accumulation is, and what memory it saves (BASIC section 4).

Trains `basic_nano` on glyphs with whole gradients, batch norm at its first statistics
and the log-scale fixed, and at every step forms, from the gradients of the step's
microbatches, the second moments that slot accumulation would keep. `replicas` is R, the
parts of a microbatch whose spread the variance is estimated from; 1 stands for the two
halves that `slot_accumulation` takes on any number of devices. What a step saves, in
every row of the table, is that of another, larger encoder (`slot_memory`).

Example:
  python -m experiments.studies.slot_accumulation --output runs/slots --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import itertools
import json
import math
import pathlib

import keras
import numpy as np
import tensorflow as tf
from absl import flags
from matplotlib import figure

from basic_tf import losses
from basic_tf.data import batches, example_order, sources, tokenizer
from basic_tf.models import zoo
from basic_tf.optimizers import adafactorw
from basic_tf.optimizers.moments import mean_squares
from basic_tf.training import microbatching, slot_accumulation
from basic_tf.training.stateless_encoder import StatelessEncoder
from experiments.studies import fresh_process, page, slot_memory

BETA_2 = 0.9  # averages over the steps of the study
BATCH_SIZE, NUM_PARTS = 256, 64
REPLICAS = (1, 4, 8)
WHOLE = {"num_steps": 10, "warmup_steps": 5, "microbatches": (2, 8, 32)}
QUICK = {"num_steps": 1, "warmup_steps": 2, "microbatches": (2, 32)}

_DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of TFDS data sets.")


def main(output, quick):
    rows = _measure_errors(**(QUICK if quick else WHOLE))
    memory = slot_memory.measure(quick)
    rows = [row | slot_memory.saved(memory) for row in rows]
    summary = f"{_summary(rows)} {slot_memory.summary(memory)}"
    page.write(output, "Slot accumulation", summary, rows, [_plot(rows)])
    text = json.dumps(memory, indent=2)
    (pathlib.Path(output) / "memory.json").write_text(text)
    print(summary)


def _measure_errors(num_steps, warmup_steps, microbatches):
    """Rows of relative errors after `num_steps` steps, over all factored weights."""
    keras.utils.set_random_seed(0)
    examples = sources.load("tfds:glyphs/concepts:train[:10%]", _DATA_DIR.value)
    pieces = tokenizer.Tokenizer(tokenizer.train(examples.captions, 400), 16)
    model = zoo.build(zoo.configuration("basic_nano"), pieces.vocabulary_size)
    encoders = [
        StatelessEncoder(encode, each, each.trainable_variables, batch_norm="frozen")
        for encode, each in (
            (model.encode_image, model.image_encoder),
            (model.encode_text, model.text_encoder),
        )
    ]
    weights = [weight for each in encoders for weight in each.weights]
    optimizer = adafactorw.AdaFactorW(2e-3)
    optimizer.build(weights)
    parts_of = tf.function(lambda *inputs: _part_gradients(encoders, model, inputs))
    configurations = [
        (replicas, num)
        for replicas in REPLICAS
        for num in microbatches
        if max(replicas, 2) * num <= NUM_PARTS  # not 4 and 8 replicas of 32
    ]
    estimates = {
        (*configuration, correction): _Moments(weights)
        for configuration in configurations
        for correction in slot_accumulation.CORRECTIONS
    }
    exact = _Moments(weights)
    last_step = warmup_steps + num_steps
    for images, token_ids in _batches(examples, pieces, last_step):
        parts = [part.numpy() for part in parts_of(images, token_ids)]
        gradients = [part.sum(0) for part in parts]
        if int(optimizer.iterations) >= warmup_steps:
            nothing = [_mean_squares(np.zeros_like(g)) for g in gradients]
            exact.add([_mean_squares(g) for g in gradients], nothing, 1, 0.0)
            for replicas, num in configurations:
                pairs = [_squares_and_spreads(part, replicas, num) for part in parts]
                for correction in slot_accumulation.CORRECTIONS:
                    factor = slot_accumulation.correction_factor(correction, num)
                    moments = estimates[replicas, num, correction]
                    moments.add(*zip(*pairs, strict=True), num, factor)
        optimizer.apply([tf.constant(g) for g in gradients], weights)
    firsts = [np.asarray(optimizer.slots(w)[0].value, np.float32) for w in weights]
    updates = exact.updates(firsts)
    return [
        {
            "replicas": replicas,
            "microbatches": num,
            "correction": correction,
            "second_moment_error": _error(moments, exact, 2),
            "second_moment_error_unfactored": _error(moments, exact, 1),
            "update_error": _median_error(moments.updates(firsts), updates),
            "batch_size": BATCH_SIZE,
            "steps": num_steps,
        }
        for (replicas, num, correction), moments in estimates.items()
    ]


def _batches(examples, pieces, num_steps):
    indices = example_order.shuffled_indices(len(examples), BATCH_SIZE, 0, num_steps, 0)
    images = batches.training_images(examples, 32, indices, 0)
    for (_, rows), pixels in tf.data.Dataset.zip(indices, images):
        yield pixels, pieces([examples.captions[row] for row in rows.numpy()])


def _part_gradients(encoders, model, inputs):
    """Shares of the gradient, `[parts, ...]` a weight, of equal parts of a batch."""
    passes = [
        microbatching.encode(encoder, each, BATCH_SIZE // NUM_PARTS, 0)
        for encoder, each in zip(encoders, inputs, strict=True)
    ]
    embeddings = [each.embeddings for each in passes]
    with microbatching.watching(embeddings) as tape:
        loss, _ = losses.contrastive_loss(*embeddings, model.log_scale.value)
    gradients = []
    for each, by_embeddings in zip(
        passes, tape.gradient(loss, embeddings), strict=True
    ):
        gradients += _of_each_part(each.batch, by_embeddings)
    return gradients


def _of_each_part(batch, by_embeddings):
    def gradients_of(index):
        with microbatching.watching(batch.weights) as tape:
            embeddings, _ = batch.forward(index)
            value = batch.product(embeddings, by_embeddings, index)
        return batch.gradients(tape, value)

    return tf.map_fn(
        gradients_of,
        tf.range(NUM_PARTS),
        fn_output_signature=[tf.TensorSpec(w.shape) for w in batch.weights],
        parallel_iterations=1,
    )


def _mean_squares(gradient):
    num_moments = 2 if adafactorw.is_factored(gradient.shape) else 1
    return mean_squares(gradient, num_moments)


def _squares_and_spreads(parts, replicas, num):
    """What slot accumulation adds up of a weight, from `[parts, ...]` gradients.

    The sums over microbatches of the mean squares of their gradients, and of what has
    the variance of these as expectation: R times the variance over replicas, of R - 1
    degrees of freedom. (Of two halves, that is the square of their difference.)
    """
    split = max(replicas, 2)
    shares = parts.reshape(num, split, -1, *parts.shape[1:]).sum(2)
    whole = shares.sum(1)
    deviations = (shares - whole[:, None] / split) * math.sqrt(split / (split - 1))
    # Means are linear in squares: of their sum, in place of each.
    return (
        _mean_squares(np.sqrt(np.square(whole).sum(0))),
        _mean_squares(np.sqrt(np.square(deviations).sum((0, 1)))),
    )


class _Moments:
    """Second moments of every weight, averaged over the steps of the study."""

    def __init__(self, weights):
        self.optimizer = adafactorw.AdaFactorW(beta_2=BETA_2)
        self.values = [_mean_squares(np.zeros(w.shape, np.float32)) for w in weights]

    def add(self, squares, spreads, count, factor):
        self.values = [
            slot_accumulation.second_moments_after(
                self.optimizer, old, square, spread, count, factor
            )
            for old, square, spread in zip(self.values, squares, spreads, strict=True)
        ]

    def updates(self, firsts):
        """The update of every weight."""
        return [
            adafactorw.clip_by_rms(first * adafactorw.inverse_root(moments, 1.0), 1.0)
            for first, moments in zip(firsts, self.values, strict=True)
        ]


def _error(ours, theirs, num_moments):
    """Median relative error of the moments of factored (2) or other (1) weights."""
    chosen = [
        itertools.chain(*(v for v in each.values if len(v) == num_moments))
        for each in (ours, theirs)
    ]
    return _median_error(*chosen)


def _median_error(ours, theirs):
    errors = [  # float64: squares of small second moments are no float32 any more
        np.linalg.norm(np.subtract(one, other, dtype=float))
        / np.linalg.norm(np.asarray(other, float))
        for one, other in zip(ours, theirs, strict=True)
        if np.any(other)  # not of weights that no gradient has reached
    ]
    return round(float(np.median(errors)), 4)


def _summary(rows):
    def mean(correction, field):
        return np.mean([row[field] for row in rows if row["correction"] == correction])

    parts = [
        f"{name}: {mean(name, 'second_moment_error'):.2f} and "
        f"{mean(name, 'update_error'):.2f}"
        for name in slot_accumulation.CORRECTIONS
    ]
    return (
        "Relative error of the second moment of factored weights and of the update, "
        f"mean over all rows, by correction: {'; '.join(parts)}."
    )


def _plot(rows):
    plot = figure.Figure(figsize=(8, 3))
    for axes, replicas in zip(plot.subplots(1, 3, sharey=True), REPLICAS, strict=True):
        for correction in slot_accumulation.CORRECTIONS:
            chosen = [
                row
                for row in rows
                if (row["replicas"], row["correction"]) == (replicas, correction)
            ]
            axes.loglog(
                [row["microbatches"] for row in chosen],
                [row["second_moment_error"] for row in chosen],
                "o-",
                label=correction,
            )
        axes.set_title(f"R = {replicas}" if replicas > 1 else "two halves")
        axes.set_xlabel("microbatches K")
    axes.legend()
    plot.tight_layout()
    return plot


if __name__ == "__main__":
    fresh_process.run(main, slot_memory.measure_step)
