"""A run that was written by hand, read back."""

import io
import json
import logging

import numpy as np
import pytest
import tiny_run
from PIL import Image

import basic_tf
from basic_tf.data import tokenizer
from basic_tf.models import image_size, zoo
from basic_tf.training import checkpoints, loaded_run
from tests.models.model_test_case import randomize_weights

TEXTS = ["a red square", "a blue circle", "the letter q"] * 3
LABEL_NAMES = ["square", "größe", "漢"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """`(workdir, model, tokenizer)`; the newest checkpoint holds what the model has."""
    workdir = tmp_path_factory.mktemp("run")
    config = tiny_run.tiny_config("data")
    content = tokenizer.train(TEXTS, 60)
    ours = tokenizer.Tokenizer(content, config.model.text_encoder.max_length)
    model = zoo.build(config.model.to_dict(), ours.vocabulary_size)
    (workdir / "config.json").write_text(config.to_json_best_effort())
    (workdir / "tokenizer.model").write_bytes(content)
    (workdir / "labels.json").write_text(json.dumps(LABEL_NAMES))
    variables = loaded_run.model_variables(model)
    checkpoints.save(workdir / "checkpoints", 2, variables)
    randomize_weights(model)
    checkpoints.save(workdir / "checkpoints", 10, variables)
    return workdir, model, ours


def test_a_checkpoint_holds_every_variable_of_a_model_by_its_path(written):
    _, model, _ = written
    variables = loaded_run.model_variables(model)
    assert len(variables) == len(model.variables) > 20
    assert "model/dual_encoder/log_scale" in variables
    assert any("moving_variance" in name for name in variables)


def test_the_newest_weights_come_back_bit_for_bit(written):
    workdir, model, _ = written
    run = basic_tf.load(str(workdir))
    for ours, saved in zip(run.model.variables, model.variables, strict=True):
        assert ours.path == saved.path
        np.testing.assert_array_equal(ours, saved, err_msg=saved.path)


def test_what_belongs_to_the_model_comes_with_it(written):
    workdir, _, ours = written
    run = loaded_run.load(workdir)
    captions = [*TEXTS, "q " * 30, ""]
    token_ids = run.tokenizer(captions)
    assert token_ids.shape == (len(captions), 16)  # max_length of the configuration
    np.testing.assert_array_equal(token_ids, ours(captions))
    assert run.label_names == LABEL_NAMES
    assert run.config.phases.joint.steps == 6


def test_an_image_is_loaded_in_the_size_of_the_model(written):
    run = loaded_run.load(written[0])
    assert run.image_size == 32
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (32, 32, 3)).astype(np.uint8)
    file = io.BytesIO()
    # Shown is the centre of a wide image, whose shorter side fits.
    Image.fromarray(np.pad(pixels, ((0, 0), (8, 8), (0, 0)))).save(file, "PNG")
    loaded = run.load_image(file.getvalue())
    # Resized by 1, in float32.
    np.testing.assert_allclose(loaded, pixels / 255, atol=1e-5)


def test_a_run_that_was_not_trained_to_its_end_says_so(written, caplog):
    workdir, *_ = written
    with caplog.at_level(logging.WARNING):
        loaded_run.load(workdir)
    assert "not trained to its end: this is " in caplog.text
    assert "checkpoints/step-00000010" in caplog.text
    caplog.clear()
    (workdir / "train.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        loaded_run.load(workdir)
    (workdir / "train.json").unlink()
    assert "not trained" not in caplog.text


def test_a_configuration_of_another_model_is_refused_by_name(written, tmp_path):
    workdir, *_ = written
    for name in ("tokenizer.model", "labels.json"):
        (tmp_path / name).write_bytes((workdir / name).read_bytes())
    (tmp_path / "checkpoints").symlink_to(workdir / "checkpoints")
    config = tiny_run.tiny_config("data")
    config.model.embedding_dim = 12
    (tmp_path / "config.json").write_text(config.to_json_best_effort())
    with pytest.raises(ValueError, match=r"does not fit this model: .*\(stored: \["):
        loaded_run.load(tmp_path)


def test_weights_of_a_run_start_a_model_of_another_image_size(written):
    workdir, model, ours = written
    configuration = tiny_run.tiny_config("data").model.to_dict()
    configuration["image_encoder"]["image_size"] = 48
    larger = zoo.build(configuration, ours.vocabulary_size)
    loaded_run.start_from(workdir, larger, configuration, ours.vocabulary_size)
    expected = image_size.at_image_size(model.image_encoder, 48)
    images = np.random.default_rng(0).random((2, 48, 48, 3), np.float32)
    np.testing.assert_array_equal(larger.image_encoder(images), expected(images))
    tokens = ours(["a red square"])
    np.testing.assert_array_equal(larger.encode_text(tokens), model.encode_text(tokens))


def test_weights_of_another_model_start_none(written):
    workdir, _, ours = written
    configuration = tiny_run.tiny_config("data").model.to_dict()
    configuration["image_encoder"] |= {"image_size": 48, "widths": (8, 16, 64)}
    wider = zoo.build(configuration, ours.vocabulary_size)
    with pytest.raises(ValueError, match="step-00000010 does not fit this model: "):
        loaded_run.start_from(workdir, wider, configuration, ours.vocabulary_size)
