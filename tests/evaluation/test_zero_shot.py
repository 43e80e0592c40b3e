import dataclasses
import io
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run
from PIL import Image

from basic_tf import memory
from basic_tf.data import sources, tokenizer
from basic_tf.evaluation import embedder, tasks, zero_shot
from basic_tf.models import zoo

NAMES = ["red square", "blue, square", "{green}", "50 % grey"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An untrained model with its tokenizer: equalities need no training."""
    keras.utils.set_random_seed(0)
    model = tokenizer.train([f"a picture of {n}" for n in NAMES * 3], 60)
    config = tiny_run.tiny_config(tmp_path_factory.mktemp("data")).model.to_dict()
    ours = tokenizer.Tokenizer(model, 16)
    return types.SimpleNamespace(
        model=zoo.build(config, ours.vocabulary_size), tokenizer=ours, image_size=32
    )


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    images = []
    for _ in range(19):
        file = io.BytesIO()
        pixels = rng.integers(0, 256, (32, 32, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(file, "PNG")
        images.append(file.getvalue())
    return tasks.Task(
        name="noise",
        examples=sources.Examples(images, [""] * 19),
        labels=rng.integers(0, 4, 19),
        class_names=NAMES,
        templates=["{}", "a picture of {}"],
    )


def test_the_classifier_normalises_averages_normalises(run):
    def encode(texts):
        return run.model.encode_text(run.tokenizer(tf.constant(texts)))

    weights = zero_shot.classifier(encode, NAMES, ["{}", "a picture of {}"])
    for row, name in enumerate(NAMES):
        prompts = [encode([text]).numpy()[0] for text in (name, f"a picture of {name}")]
        mean = np.mean([p / np.linalg.norm(p) for p in prompts], axis=0)
        np.testing.assert_allclose(
            weights[row], mean / np.linalg.norm(mean), rtol=1e-4, atol=1e-6
        )


def test_every_example_counts_once_at_any_batch_size(run, task):
    outcomes = [
        zero_shot.evaluate(embedder.Embedder(run, size), task)
        for size in (1, 7, 19, 64)
    ]
    for outcome in outcomes:
        assert outcome.metrics["num_examples"] == 19
        assert outcome.metrics == outcomes[0].metrics
        np.testing.assert_allclose(
            outcome.ranking.top_scores, outcomes[0].ranking.top_scores, atol=1e-5
        )


def test_a_permutation_of_the_classes_changes_nothing(run, task):
    order = [2, 0, 3, 1]
    permuted = dataclasses.replace(
        task,
        class_names=[NAMES[i] for i in order],
        labels=np.argsort(order)[task.labels],
    )
    ours = zero_shot.evaluate(embedder.Embedder(run), task)
    theirs = zero_shot.evaluate(embedder.Embedder(run), permuted)
    for name in ("top1", "top5", "mean_per_class_recall"):
        assert ours.metrics[name] == pytest.approx(theirs.metrics[name], rel=1e-12)
    np.testing.assert_array_equal(
        np.argsort(order)[ours.ranking.top], theirs.ranking.top
    )


def test_a_template_given_twice_changes_nothing(run, task):
    twice = dataclasses.replace(task, templates=["a {}", "a {}"])
    once = dataclasses.replace(task, templates=["a {}"])
    ours, theirs = (
        zero_shot.evaluate(embedder.Embedder(run), given) for given in (once, twice)
    )
    assert ours.metrics == theirs.metrics
    np.testing.assert_array_equal(ours.ranking.top_scores, theirs.ranking.top_scores)


def test_evaluating_twice_gives_the_same_and_moves_no_variable(run, task):
    before = [variable.numpy() for variable in run.model.variables]
    other = dataclasses.replace(task, class_names=NAMES[::-1], templates=["{}"])
    first = zero_shot.evaluate(embedder.Embedder(run), task)
    zero_shot.evaluate(
        embedder.Embedder(run), other
    )  # a task in between leaves nothing behind
    second = zero_shot.evaluate(embedder.Embedder(run), task)
    assert first.metrics == second.metrics
    np.testing.assert_array_equal(first.ranking.top_scores, second.ranking.top_scores)
    for value, variable in zip(before, run.model.variables, strict=True):
        np.testing.assert_array_equal(value, variable.numpy())


def test_many_images_of_many_classes_take_little_memory(run, task):
    generator = np.random.default_rng(0)
    embeddings, weights = generator.normal(size=(2, 10_000, 16)).astype(np.float32)
    labels = np.arange(10_000)
    weights[:5_000] = embeddings[:5_000]
    embeddings, weights = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (embeddings, weights)
    )
    many = dataclasses.replace(task, labels=labels, class_names=["x"] * 10_000)
    before = memory.forget_peak()
    result = zero_shot.classify(many, embeddings, weights)
    assert memory.peak_memory_mb() - before < 500
    assert (result.ranking.ranks[:5_000] == 0).all()
    assert 0.5 <= result.metrics["top1"] < 0.51


def test_no_class_is_refused(run, task):
    with pytest.raises(ValueError, match="no class name"):
        zero_shot.evaluate(
            embedder.Embedder(run), dataclasses.replace(task, class_names=[])
        )
