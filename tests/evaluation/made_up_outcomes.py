"""Outcomes of runs that never were, for reports of them."""

import types

import numpy as np
import tensorflow as tf
from ml_collections import ConfigDict

from basic_tf.data import sources
from basic_tf.evaluation import metrics, run_outcome, task_metrics, task_result


def make_scores(num_classes, num_examples=60, noise=0.5, seed=0):
    """`(labels, scores)` of a classifier that is right about some examples."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(num_classes, size=num_examples)
    scores = 0.3 * np.eye(num_classes)[labels]
    scores += noise * generator.uniform(-1, 1, scores.shape)
    return labels, np.float32(scores)


def make_result(class_names, num_examples=60, noise=0.5, size=8, seed=0, metric="top1"):
    """The result of `make_scores`; all examples are right without noise."""
    labels, scores = make_scores(len(class_names), num_examples, noise, seed)
    ranking = metrics.rank(labels, scores.__getitem__, len(class_names))
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (num_examples, size, size, 3), np.uint8)
    return task_result.TaskResult(
        kind="zero_shot",
        metrics=task_metrics.single_label(metric, labels, ranking),
        ranking=ranking,
        labels=labels,
        class_names=class_names,
        templates=["a {}"],
        examples=sources.Examples(
            images=[tf.io.encode_png(image).numpy() for image in pixels],
            captions=[class_names[label] for label in labels],
        ),
    )


def make_outcome(results, workdir="runs/demo", image_size=8):
    phases = {"pretrain": (20, 128, False), "joint": (10, 64, True)}
    config = {
        "seed": 0,
        "data": {"train": "tfds:glyphs/concepts:train", "data_dir": ""},
        "phases": {
            name: {"kind": "contrastive", "steps": steps, "batch_size": batch_size}
            for name, (steps, batch_size, _) in phases.items()
        },
    }
    rows, totals, total_step = [], {}, 0
    for name, (steps, batch_size, has_temperature) in phases.items():
        for step in range(5, steps + 1, 5):
            row = {"phase": name, "step": step, "total_step": total_step + step}
            row |= {"loss": 5.0 / step, "accuracy": 1 - 1 / step}
            rows.append(row | ({"temperature": 0.1} if has_temperature else {}))
        total_step += steps
        totals[name] = {
            "steps": steps,
            "examples": steps * batch_size,
            "seconds": 61.5,
            "examples_per_second": round(steps * batch_size / 61.5, 1),
        }
    training = {
        "seconds": 123.0,
        "examples_per_second": 26.0,
        "cpu_utilization": 0.913,
        "peak_memory_mb": 1_000_000,
        "phases": totals,
        "input_examples_per_second": 4321.0,
        "parameters": {"image_encoder": 1_234_567, "text_encoder": 456_789},
    }
    run = types.SimpleNamespace(
        config=ConfigDict(config), label_names=["a", "b"], image_size=image_size
    )
    return run_outcome.RunOutcome(workdir, run, results, rows, training)


def names(count, prefix="class"):
    return [f"{prefix} {index}" for index in range(count)]
