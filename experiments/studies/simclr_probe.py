"""What a linear probe reads in an encoder that was trained without names.

Fits the probe on a few examples of each name, on the representations of a run of
`simclr.py:glyphs`, on those of the same encoder with fresh weights, and on the pixels.

Examples:
  python -m experiments.studies.simclr_probe --workdir runs/s --output runs/probe
  python -m experiments.studies.simclr_probe --workdir runs/s --output runs/q --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from absl import flags
from matplotlib import figure

import basic_tf
from basic_tf.data import batches, mixture
from basic_tf.evaluation import features, label_subsets, linear_probe
from basic_tf.models import zoo
from experiments import command_line
from experiments.studies import page

_WORKDIR = flags.DEFINE_string("workdir", None, "A run of simclr.py:glyphs.")
_OUTPUT = flags.DEFINE_string("output", None, "Folder for table.json and report.html.")
_QUICK = flags.DEFINE_boolean("quick", False, "A quarter of the examples.")

_SHOTS = 20  # examples of a name, four fifths of them to fit, a fifth to choose lambda
_STRENGTHS = (1e-3, 1e-2, 1e-1)


def main(arguments):
    command_line.refuse(arguments)
    run = basic_tf.load(_WORKDIR.value)
    shots = _SHOTS // 4 if _QUICK.value else _SHOTS
    few, test = (
        _few(mixture.load(f"tfds:glyphs/concepts:{split}", run.config.data.data_dir), n)
        for split, n in (("train", shots), ("validation", None))
    )
    keras.utils.set_random_seed(0)
    fresh = zoo.build(run.config.model.to_dict(), run.tokenizer.vocabulary_size)
    kinds = {
        "trained encoder": lambda each: _embed(run.model, each, run.image_size),
        "random encoder": lambda each: _embed(fresh, each, run.image_size),
        "pixels": lambda each: _pixels(each, run.image_size),
    }
    rows = []
    for kind, read in kinds.items():
        accuracy, strength = probe(
            (read(few), few.labels), (read(test), test.labels), shots // 5
        )
        rows.append(
            {
                "features": kind,
                "top1": round(accuracy, 4),
                "strength": strength,
                "shots": shots,
                "test_examples": len(test),
                "workdir": _WORKDIR.value,
            }
        )
        print(rows[-1])
    page.write(
        _OUTPUT.value, "A probe without names", _summary(rows), rows, [_plot(rows)]
    )
    print(_summary(rows))


def probe(training, test, shots):
    """Accuracy of a linear probe, and its lambda.

    Args:
        training: `(features [N, D], labels [N])`, of which `shots` of each label choose
            lambda and the others fit.
        test: the same, of other examples.
        shots: of each label.
    """
    inputs, labels = training[0], np.asarray(training[1])
    chosen = np.zeros(len(labels), bool)
    chosen[label_subsets.few_shot(labels, shots, seed=0)] = True
    mean, spread = inputs.mean(0), inputs.std(0) + 1e-6
    scale = spread * np.sqrt(inputs.shape[1])

    def accuracy(fitted, others):
        return np.mean(fitted.predict((others[0] - mean) / scale) == others[1])

    def fit(strength):
        scaled = (inputs[~chosen] - mean) / scale
        return linear_probe.fit(scaled, labels[~chosen], strength)[0]

    probes = {strength: fit(strength) for strength in _STRENGTHS}
    validation = inputs[chosen], labels[chosen]
    best = max(_STRENGTHS, key=lambda s: (accuracy(probes[s], validation), s))
    return float(accuracy(probes[best], (test[0], np.asarray(test[1])))), best


def _few(examples, shots):
    """So many examples of each name; all where None."""
    if shots is None:
        return examples
    keep = np.zeros(len(examples), bool)
    keep[label_subsets.few_shot(examples.labels, shots, seed=0)] = True
    return examples.select(keep)


def _embed(model, examples, image_size):
    return features.embed_images(model, examples, image_size)


def _pixels(examples, image_size):
    dataset = batches.evaluation_batches(examples, image_size, 256)
    parts = [images.numpy()[mask.numpy()] for images, mask in dataset]
    return np.concatenate(parts).reshape(len(examples), -1)


def _summary(rows):
    trained, *others = rows
    parts = [
        f"{other['top1']:.3f} on {other['features']} "
        f"({trained['top1'] - other['top1']:+.3f})"
        for other in others
    ]
    return (
        f"Top-1 of a linear probe on {trained['shots']} examples of each name, of "
        f"{trained['test_examples']} other renderings: {trained['top1']:.3f} on the "
        f"encoder trained without names, {', '.join(parts)}. One seed."
    )


def _plot(rows):
    plot = figure.Figure(figsize=(6, 3))
    axes = plot.subplots()
    axes.bar([row["features"] for row in rows], [row["top1"] for row in rows])
    axes.set_ylabel("top-1 of a linear probe")
    return plot


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir", "output"])
    command_line.run(main)
