import hashlib
import json

import keras
import numpy as np
import pytest
from keras import layers

from basic_tf.evaluation import prompt_sets, results, task_metrics, task_result
from tests.evaluation.made_up_outcomes import make_result, names

FIELDS = {"source": "folder:mine", "metric": "top1", "templates": ["a {}"]}


@pytest.fixture
def result():
    return make_result(names(7), 30)


def identity(fields=FIELDS, model="ab", image_size=32, prompts=None):
    return results.identity("mine", fields, model, image_size, prompts)


def test_a_result_is_restored_without_the_model(tmp_path, result):
    assert results.find(tmp_path, "mine", identity()) is None
    results.write(tmp_path, "mine", identity(), result, {"batch_size": 8})
    record = results.find(tmp_path, "mine", identity())
    assert record["metrics"] == result.metrics
    assert record["batch_size"] == 8
    restored = results.restore(tmp_path, record, result.examples)
    assert restored.metrics == result.metrics
    assert restored.class_names == result.class_names
    np.testing.assert_array_equal(restored.labels, result.labels)
    for name in ("top", "top_scores", "ranks", "scores"):
        expected = getattr(result.ranking, name)
        np.testing.assert_array_equal(getattr(restored.ranking, name), expected)
    assert restored.ranking.num_classes == 7


def test_all_that_a_result_depends_on_is_recorded(tmp_path, result):
    results.write(tmp_path, "mine", identity(), result, {})
    record = json.loads((tmp_path / "mine.json").read_text())
    assert record["inputs"] == {
        "kind": "zero_shot",
        "task": FIELDS,
        "templates_sha256": hashlib.sha256(b'["a {}"]').hexdigest(),
        "imported_class_names_sha256": None,
        "model_sha256": "ab",
        "image_size": 32,
    }
    assert record["versions"]["keras"] == keras.__version__
    assert (record["class_names"], record["templates"]) == (names(7), ["a {}"])


def test_a_result_of_other_inputs_is_not_overwritten(tmp_path, result):
    results.write(tmp_path, "mine", identity(), result, {})
    imported = prompt_sets.PromptSets({"mine": ["{}"]}, {"mine": names(7, "x")})
    for wanted, differing in (
        (identity(model="cd"), "model_sha256"),
        (identity(image_size=64), "image_size"),
        (identity(FIELDS | {"metric": "area_under_roc"}), "task"),
        (identity(prompts=imported), "templates_sha256, imported_class_names_sha256"),
    ):
        message = rf"mine\.json is of another {differing} and is not overwritten"
        with pytest.raises(ValueError, match=message):
            results.find(tmp_path, "mine", wanted)


def test_other_data_are_refused(tmp_path, result):
    results.write(tmp_path, "mine", identity(), result, {})
    record = results.find(tmp_path, "mine", identity())
    fewer = result.examples.select(np.arange(30) < 29)
    with pytest.raises(ValueError, match="29 examples and 30 were evaluated"):
        results.restore(tmp_path, record, fewer)


def test_a_result_of_several_labels_has_no_ranking(tmp_path, result):
    targets = np.eye(7, dtype=int)[result.labels]
    scores = np.random.default_rng(0).normal(size=targets.shape)
    found = task_metrics.multi_label(targets, scores)
    several = task_result.TaskResult("zero_shot", found, result.examples)
    results.write(tmp_path, "mine", identity(), several, {})
    record = results.find(tmp_path, "mine", identity())
    assert results.restore(tmp_path, record, result.examples).ranking is None


def test_the_fingerprint_of_a_model_is_that_of_its_weights():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    before = results.model_fingerprint(model)
    assert results.model_fingerprint(model) == before
    kernel, bias = model.get_weights()
    model.set_weights([np.nextafter(kernel, 1.0, dtype="float32"), bias])
    assert results.model_fingerprint(model) != before
    model.set_weights([kernel, bias])
    assert results.model_fingerprint(model) == before
