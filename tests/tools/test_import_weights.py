"""An imported model gives what it gave before, and is exported like a trained one."""

import json

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import basic_tf
from basic_tf.export import open_clip_configuration, saved_model, weights
from basic_tf.models import zoo
from tests import imported_run
from tests.models.model_test_case import random_images

DESCRIPTION = {
    "model_cfg": {
        "embed_dim": 8,
        "quick_gelu": True,
        "vision_cfg": {
            "image_size": 32,
            "layers": 1,
            "width": 16,
            "head_width": 8,
            "patch_size": 16,
        },
        "text_cfg": {
            "context_length": 12,
            "vocab_size": imported_run.VOCABULARY_SIZE,
            "width": 16,
            "heads": 2,
            "layers": 1,
        },
    },
    "preprocess_cfg": {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """`(model, folder)` with the files that the program reads."""
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("source")
    model = zoo.build(*open_clip_configuration.from_open_clip(DESCRIPTION))
    model.log_scale.assign(3.0)
    state_dict = weights.to_state_dict(model)
    safetensors.numpy.save_file(state_dict, folder / "a.safetensors")
    (folder / "a.json").write_text(json.dumps(DESCRIPTION))
    (folder / "vocabulary.txt").write_bytes(imported_run.VOCABULARY)
    return model, folder


def run_program(folder, **changes):
    values = {
        "weights": folder / "a.safetensors",
        "model": folder / "a.json",
        "vocabulary": folder / "vocabulary.txt",
    } | changes
    return imported_run.run_program("tools.import_weights", **values)


@pytest.fixture(scope="module")
def workdir(source):
    _, folder = source
    process = run_program(folder, workdir=folder / "run")
    assert process.returncode == 0, process.stderr
    return folder / "run"


def test_the_run_embeds_as_the_model_that_it_was_made_of(source, workdir):
    model, _ = source
    run = basic_tf.load(workdir)
    images = random_images(2, 32, 32, 3)
    token_ids = run.tokenizer(["home", "a HOME!"])
    assert token_ids.numpy()[0, :4].tolist() == [515, 514, 516, 0]
    for name, inputs in (("encode_image", images), ("encode_text", token_ids)):
        expected = getattr(model, name)(inputs)
        actual = getattr(run.model, name)(inputs)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(run.model.log_scale, 3.0)
    assert run.image_size == 32


def test_the_run_is_exported_with_its_tokenizer(workdir, tmp_path):
    run = basic_tf.load(workdir)
    saved_model.ZeroShotServer(run, ["home", "heart"], ["a {}"]).save(tmp_path)
    encode_text = tf.saved_model.load(tmp_path).signatures["encode_text"]
    outputs = encode_text(texts=tf.constant(["home"]))
    token_ids = run.tokenizer(["home"])
    np.testing.assert_array_equal(outputs["token_ids"], token_ids)
    expected = run.model.encode_text(token_ids)
    np.testing.assert_allclose(outputs["embeddings"], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workdir": "{folder}"}, " is not empty; name a new folder"),
        ({"model": "vit_b_33"}, "--model vit_b_33 is neither a file nor one of vit_b"),
        ({"model": "rn50"}, "makes 517 ids and the model has 49408"),
        ({"weights": "{folder}/a.json"}, "a.json is no whole safetensors or PyTorch"),
    ],
    ids=["folder", "name", "vocabulary", "weights"],
)
def test_a_mistake_is_one_line_and_leaves_no_run(source, tmp_path, changes, message):
    _, folder = source
    changes = {name: value.format(folder=folder) for name, value in changes.items()}
    process = run_program(folder, **{"workdir": tmp_path / "run"} | changes)
    assert process.returncode == 1
    (line,) = [row for row in process.stderr.splitlines() if row.startswith("error: ")]
    assert message in line
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "run").exists()
