"""Embeddings and names of classes from tables, by source."""

import types

import numpy as np
import pytest

from basic_tf.evaluation import probe_task

NAMES = np.array(["ant", "bee"])


@pytest.fixture
def evaluate(monkeypatch):
    """`probe_task.evaluate` of `{source: [names]}`; an embedding tells its name."""

    def call(names_of, **fields):
        task = {"source": "test", "training": "train", "metric": "top1"} | fields
        monkeypatch.setattr(
            probe_task.tasks, "load_checked", lambda _, task, __: task["source"]
        )
        monkeypatch.setattr(
            probe_task.tasks,
            "labels_of",
            lambda _, __, source: (np.arange(len(names_of[source])), names_of[source]),
        )

        def images(source, *_):
            rows = np.array([ord(name[0]) for name in names_of[source]])
            return np.stack([np.cos(rows), np.sin(rows)], 1).astype(np.float32)

        embedder = types.SimpleNamespace(images=images)
        return probe_task.evaluate(embedder, "mine", task).metrics

    return call


def test_a_fifth_of_the_training_images_chooses_lambda(evaluate):
    found = evaluate({"test": NAMES, "train": NAMES.repeat(10)})
    assert (found["num_training"], found["num_validation"]) == (16, 4)
    assert found["top1"] == 1.0


def test_a_validation_source_chooses_lambda_in_its_place(evaluate):
    names = {"test": NAMES, "train": NAMES.repeat(10), "held": NAMES.repeat(3)}
    found = evaluate(names, validation="held")
    assert (found["num_training"], found["num_validation"]) == (20, 6)


@pytest.mark.parametrize("source", ["test", "held"])
def test_a_class_without_a_training_image_is_named(evaluate, source):
    names = {"test": NAMES, "train": NAMES.repeat(10), "held": NAMES}
    names[source] = np.array(["ant", "cat", "bee"])
    with pytest.raises(ValueError, match=r"mine: no training image has .*'cat'"):
        evaluate(names, validation="held")
