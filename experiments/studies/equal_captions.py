"""Does it help to take equal captions of a batch out of the negatives?

Trains the text encoder on the frozen image encoder of a run, with and without
`exclude_equal_captions`, from several seeds, and evaluates both zero-shot.

Examples:
  python -m experiments.studies.equal_captions --workdir runs/demo --output runs/equal
  python -m experiments.studies.equal_captions --workdir runs/demo --output runs/q \
      --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import dataclasses
import pathlib

import keras
import numpy as np
from absl import flags
from matplotlib import figure

import basic_tf
from basic_tf.evaluation import embedder, tasks, zero_shot
from basic_tf.models import zoo
from basic_tf.training import phases, run_data
from experiments import command_line
from experiments.studies import page

_WORKDIR = flags.DEFINE_string("workdir", None, "A finished run of glyphs.py.")
_OUTPUT = flags.DEFINE_string("output", None, "Folder for table.json and report.html.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Repetitions.", lower_bound=1)
_QUICK = flags.DEFINE_boolean("quick", False, "One seed and a quarter of the steps.")


def main(arguments):
    command_line.refuse(arguments)
    run = basic_tf.load(_WORKDIR.value)
    if "text" not in run.config.phases:
        raise ValueError(f"{_WORKDIR.value} has no phase text to repeat")
    examples, _ = run_data.load(run.config, pathlib.Path(_WORKDIR.value))
    loaded = [
        tasks.load_task(name, run.config.data.data_dir)
        for name in run.config.evaluation.tasks
        if ":" not in name  # zero-shot alone
    ]
    config = run.config.phases.text.copy_and_resolve_references()
    if _QUICK.value:
        config.steps = max(config.steps // 4, config.warmup_steps + 1)
    rows = []
    for seed in range(1 if _QUICK.value else _SEEDS.value):
        for exclude in (False, True):
            config.exclude_equal_captions = exclude
            model = _train_text(run, config, examples, seed)
            for task in loaded:
                trained = dataclasses.replace(run, model=model)
                outcome = zero_shot.evaluate(embedder.Embedder(trained), task)
                rows.append(
                    {
                        "task": task.name,
                        "exclude_equal_captions": exclude,
                        "seed": seed,
                        "top1": outcome.metrics["top1"],
                        "steps": config.steps,
                        "batch_size": config.batch_size,
                        "workdir": _WORKDIR.value,
                    }
                )
            print(f"seed {seed}, excluded {exclude}: {rows[-len(loaded) :]}")
    page.write(
        _OUTPUT.value, "Equal captions in a batch", _summary(rows), rows, [_plot(rows)]
    )
    print(_summary(rows))


def _train_text(run, config, examples, seed):
    """The run's image encoder with a text encoder trained anew."""
    keras.utils.set_random_seed(seed)
    model = zoo.build(run.config.model.to_dict(), run.tokenizer.vocabulary_size)
    model.image_encoder.set_weights(run.model.image_encoder.get_weights())
    phase = phases.make_phase(
        "text", config, model, examples, run.tokenizer, run.image_size, seed
    )
    phase.trainer.fit(phase.make_batches(0, phase.steps), shuffle=False, verbose=0)
    return model


def _mean(rows, task, exclude):
    return np.mean(
        [
            row["top1"]
            for row in rows
            if (row["task"], row["exclude_equal_captions"]) == (task, exclude)
        ]
    )


def _summary(rows):
    names = dict.fromkeys(row["task"] for row in rows)
    seeds = len({row["seed"] for row in rows})
    steps, batch_size = rows[0]["steps"], rows[0]["batch_size"]
    parts = [
        f"{name} {_mean(rows, name, False):.3f} -> {_mean(rows, name, True):.3f}"
        for name in names
    ]
    return (
        f"Zero-shot top-1 after {steps} steps of {batch_size} pairs, mean of {seeds} "
        f"seeds, with equal captions as negatives -> without: {', '.join(parts)}."
    )


def _plot(rows):
    names = list(dict.fromkeys(row["task"] for row in rows))
    plot = figure.Figure(figsize=(7, 3))
    axes = plot.subplots()
    for offset, exclude in ((-0.2, False), (0.2, True)):
        heights = [_mean(rows, name, exclude) for name in names]
        label = "excluded" if exclude else "kept as negatives"
        axes.bar(np.arange(len(names)) + offset, heights, 0.4, label=label)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("zero-shot top-1")
    axes.legend()
    return plot


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir", "output"])
    command_line.run(main)
