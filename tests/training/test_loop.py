import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from basic_tf.training import (
    checkpoints,
    evaluator,
    loaded_run,
    loop,
    run_log,
    supervised_trainer,
)
from tests.training.interrupted_run import assert_same_end, train_until


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """`(data folder, workdir)` of a run that was never interrupted."""
    folder = tmp_path_factory.mktemp("finished")
    return folder / "data", tiny_run.train_tiny_run(folder)


@pytest.mark.parametrize("total_step", [3, 9])
def test_a_killed_run_resumes_bit_for_bit(finished, tmp_path, monkeypatch, total_step):
    data, workdir = finished
    config = tiny_run.tiny_config(data)
    train_until(monkeypatch, config, tmp_path / "run", total_step)
    loop.train(config, tmp_path / "run")
    assert_same_end(tmp_path / "run", workdir)
    rows = [(r["phase"], r["step"], r["loss"]) for r in run_log.read_rows(workdir)]
    resumed = run_log.read_rows(tmp_path / "run")
    assert rows == [(r["phase"], r["step"], r["loss"]) for r in resumed]


def test_a_damaged_checkpoint_is_passed_over(finished, tmp_path, monkeypatch, caplog):
    data, workdir = finished
    config = tiny_run.tiny_config(data)
    train_until(monkeypatch, config, tmp_path / "run", 5)
    newest = tmp_path / "run/checkpoints/step-00000004.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    loop.train(config, tmp_path / "run")
    assert "damaged" in caplog.text
    assert_same_end(tmp_path / "run", workdir)


def test_the_frozen_encoder_keeps_every_bit(finished, tmp_path, monkeypatch):
    data, _ = finished
    config = tiny_run.tiny_config(data)
    train_until(monkeypatch, config, tmp_path / "run", 11)  # phase two, step five
    (before,) = (tmp_path / "run/checkpoints").glob("*06.index")
    first = tf.train.load_checkpoint(str(before.with_suffix("")))
    prefix, _ = checkpoints.read(tmp_path / "run/checkpoints", ())
    last = tf.train.load_checkpoint(str(prefix))
    compared = 0
    for name in first.get_variable_to_shape_map():
        if name.startswith("model") and "Simage_encoder." in name:
            np.testing.assert_array_equal(first.get_tensor(name), last.get_tensor(name))
            compared += 1
    assert compared > 10
    slots = [n for n in last.get_variable_to_shape_map() if n.startswith("optimizer")]
    assert slots and not any("image_encoder" in name for name in slots)


def test_a_finished_run_is_left_as_it_is(finished, capsys):
    data, workdir = finished
    before = (workdir / "train.json").read_text()
    loop.train(tiny_run.tiny_config(data), workdir)
    assert "trained to its last step" in capsys.readouterr().out
    assert (workdir / "train.json").read_text() == before


def test_evaluation_at_stated_steps_is_logged_and_leaves_training_as_it_is(
    finished, tmp_path, monkeypatch
):
    data, workdir = finished
    fields = {"metric": "top1", "templates": "characters", "only_present": True}
    tiny = {"tiny": {"source": "tfds:glyphs/tiny:serif"} | fields}
    monkeypatch.setattr(evaluator.task_files, "known_tasks", lambda: tiny)
    config = tiny_run.tiny_config(data)
    config.evaluation = {"tasks": ("tiny", "tiny:geometry"), "every_steps": 8}
    loop.train(config, tmp_path / "run")
    rows = [r for r in run_log.read_rows(tmp_path / "run") if "tiny/top1" in r]
    assert [(row["phase"], row["total_step"]) for row in rows] == [
        ("text", 8),
        ("joint", 16),
    ]
    assert all("tiny:geometry/modality_gap" in row for row in rows)
    assert_same_end(tmp_path / "run", workdir)


def test_an_evaluation_that_cannot_be_stops_the_run_at_its_start(finished, tmp_path):
    data, _ = finished
    config = tiny_run.tiny_config(data)
    config.evaluation = {"tasks": ("pets",), "every_steps": 8}
    with pytest.raises(ValueError, match="pets: no data in"):
        loop.train(config, tmp_path / "run")
    config.evaluation.every_steps = -1
    with pytest.raises(ValueError, match="every_steps is -1; 0 is for never"):
        loop.train(config, tmp_path / "other")


def test_a_loaded_run_classifies(finished):
    run = loaded_run.load(finished[1])
    embeddings = run.model.encode_text(run.tokenizer(["a lock icon", ""]))
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=1e-5)
    assert "letter q" in run.label_names and "red" not in run.label_names


def test_train_json_adds_up(finished):
    summary = json.loads((finished[1] / "train.json").read_text())
    assert summary["phases"]["text"]["examples"] == 6 * 16
    total = sum(phase["seconds"] for phase in summary["phases"].values())
    assert total == pytest.approx(summary["seconds"], abs=0.2)
    assert summary["input_examples_per_second"] > 0


def test_no_run_and_no_checkpoint_are_said(finished, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no run"):
        loaded_run.load(tmp_path)
    shutil.copy(finished[1] / "config.json", tmp_path)
    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        loaded_run.load(tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run(finished, tmp_path):
    config = tiny_run.tiny_config(finished[0])
    config.phases.pretrain.learning_rate = 1e30
    config.phases.pretrain.min_learning_rate = 1e30
    with pytest.raises(
        FloatingPointError,
        match=r"step \d of phase pretrain .*scale is 2\.659.*checkpoint is .*step-0",
    ):
        loop.train(config, tmp_path)


def test_a_step_that_is_not_finite_is_skipped_and_counted(
    finished, tmp_path, monkeypatch, capsys
):
    steps, classify = tf.Variable(0), supervised_trainer._classify

    def not_finite_at_step_three(logits, labels):
        loss, accuracy = classify(logits, labels)
        return tf.where(steps.assign_add(1) == 3, np.nan, loss), accuracy

    monkeypatch.setattr(supervised_trainer, "_classify", not_finite_at_step_three)
    config = tiny_run.tiny_config(finished[0])
    config.phase_order = ("pretrain",)
    config.phases.pretrain.max_non_finite_steps = 1
    loop.train(config, tmp_path)
    rows = run_log.read_rows(tmp_path)
    assert [row["non_finite_steps"] for row in rows] == [0, 1, 1]
    assert all(np.isfinite(row["loss"]) for row in rows)
    assert "1 steps skipped, not finite" in capsys.readouterr().out
    summary = json.loads((tmp_path / "train.json").read_text())
    assert summary["phases"]["pretrain"]["non_finite_steps"] == 1


def test_a_row_of_skipped_steps_alone_has_no_metrics(finished, tmp_path, monkeypatch):
    classify = supervised_trainer._classify
    monkeypatch.setattr(
        supervised_trainer,
        "_classify",
        lambda *args: (np.nan * classify(*args)[0], classify(*args)[1]),
    )
    config = tiny_run.tiny_config(finished[0])
    config.phase_order = ("pretrain",)
    config.phases.pretrain.max_non_finite_steps = 6
    loop.train(config, tmp_path)
    for row in run_log.read_rows(tmp_path):
        assert row["non_finite_steps"] == row["step"]
        assert "loss" not in row and "accuracy" not in row


def test_another_number_of_replicas_is_announced(caplog):
    state = loop.RunState(num_replicas=4)
    loop._announce_replicas(state, resumes=True)
    assert "going on with 1 replicas where there were 4" in caplog.text
    assert state.num_replicas == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_named(value):
    variables = {"model/good": tf.Variable([1.0]), "model/bad": tf.Variable([1, value])}
    message = "model/bad is not finite after step 0 of phase joint"
    with pytest.raises(FloatingPointError, match=message):
        loop._check_finite(variables, loop.RunState(), "joint")


@pytest.mark.parametrize("order", [(), ("pretrain", "pretrain")])
def test_an_impossible_order_of_phases_is_refused(tmp_path, order):
    config = tiny_run.tiny_config(tmp_path)
    config.phase_order = order
    with pytest.raises(ValueError, match="must name phases, each once"):
        loop.train(config, tmp_path / "run")


def test_a_later_phase_that_is_impossible_stops_the_run_at_its_start(
    finished, tmp_path
):
    config = tiny_run.tiny_config(finished[0])
    config.phases.joint.batch_size = 10_000
    with pytest.raises(ValueError, match="phase joint: batch_size 10000 is more than"):
        loop.train(config, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


def test_a_warm_up_without_end_is_refused_before_anything_is_written(tmp_path):
    config = tiny_run.tiny_config(tmp_path)
    config.phases.joint.warmup_steps = 6
    with pytest.raises(ValueError, match="phase joint: warmup_steps 6"):
        loop.train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_misspelt_augmentation_is_refused_before_anything_is_written(tmp_path):
    config = tiny_run.tiny_config(tmp_path)
    config.phases.joint.augmentation = {"crop": {"aera": (0.1, 1.0)}}
    message = "phase joint: augmentation crop has no option 'aera'; it has area, aspect"
    with pytest.raises(ValueError, match=message):
        loop.train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [("min_learning_rate", -1.0), ("min_learning_rate", 1.0), ("weight_decay", -0.1)],
)
def test_numbers_that_cannot_train_are_refused(tmp_path, field, value):
    config = tiny_run.tiny_config(tmp_path)
    config.phases.text[field] = value
    with pytest.raises(ValueError, match=f"phase text: {field} {value} must be"):
        loop.train(config, tmp_path / "run")
