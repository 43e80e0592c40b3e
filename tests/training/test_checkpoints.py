import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.training import checkpoints


def make_variables(value):
    return {
        "model/a/kernel": tf.Variable(tf.fill([3, 2], value)),
        "model/a/bfloat": tf.Variable(tf.cast([value], tf.bfloat16)),
        "state/step": tf.Variable(value, dtype=tf.float64),
    }


def test_values_come_back_bit_for_bit(tmp_path):
    checkpoints.save(tmp_path, 7, make_variables(1.25))
    prefix, stored = checkpoints.read(tmp_path, ["state/step"])
    assert stored == {"state/step": 1.25}
    restored = make_variables(0.0)
    checkpoints.restore(prefix, restored)
    for name, variable in make_variables(1.25).items():
        np.testing.assert_array_equal(restored[name].numpy(), variable.numpy())


def test_the_newest_wins_and_the_oldest_go(tmp_path):
    for step in (1, 20, 3, 100, 50):
        checkpoints.save(tmp_path, step, make_variables(float(step)))
    assert checkpoints.read(tmp_path, ["state/step"])[1]["state/step"] == 100
    kept = sorted(path.stem for path in tmp_path.glob("*.index"))
    assert kept == ["step-00000020", "step-00000050", "step-00000100"]


def test_one_without_its_index_does_not_count(tmp_path):
    checkpoints.save(tmp_path, 1, make_variables(1.0))
    checkpoints.save(tmp_path, 2, make_variables(2.0))
    (tmp_path / "step-00000002.index").unlink()
    assert checkpoints.read(tmp_path, ["state/step"])[1]["state/step"] == 1


@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
def test_a_damaged_file_is_named_and_passed_over(tmp_path, caplog, suffix):
    checkpoints.save(tmp_path, 1, make_variables(1.0))
    checkpoints.save(tmp_path, 2, make_variables(2.0))
    path = tmp_path / f"step-00000002.{suffix}"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert checkpoints.read(tmp_path, ["state/step"])[1]["state/step"] == 1
    assert "step-00000002 is damaged" in caplog.text


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_where_all_are_damaged_nothing_begins_anew(tmp_path, content):
    for step in (1, 2):
        checkpoints.save(tmp_path, step, make_variables(1.0))
        (tmp_path / f"step-0000000{step}.index").write_bytes(content)
    message = f"none of the 2 checkpoints in {tmp_path} can be read; move the folder"
    with pytest.raises(ValueError, match=message):
        checkpoints.read(tmp_path, ["state/step"])


def test_what_was_just_written_is_kept_whatever_its_step(tmp_path):
    for step in (100, 200, 300, 7):
        checkpoints.save(tmp_path, step, make_variables(1.0))
    kept = sorted(path.stem for path in tmp_path.glob("*.index"))
    assert kept == ["step-00000007", "step-00000200", "step-00000300"]


def test_an_error_that_says_nothing_of_the_file_is_no_damage(tmp_path, monkeypatch):
    checkpoints.save(tmp_path, 1, make_variables(1.0))

    def refuse(prefix):
        raise tf.errors.PermissionDeniedError(None, None, f"{prefix}: not yours")

    monkeypatch.setattr(tf.train, "load_checkpoint", refuse)
    with pytest.raises(tf.errors.PermissionDeniedError, match="not yours"):
        checkpoints.read(tmp_path, ["state/step"])


def test_two_variables_of_one_path_are_refused():
    kernel, bias = (keras.Variable(0.0, name=name) for name in ("kernel", "bias"))
    named = checkpoints.by_path("model", [kernel, bias])
    assert named == {"model/kernel": kernel.value, "model/bias": bias.value}
    with pytest.raises(ValueError, match="two variables are called model/kernel; a"):
        checkpoints.by_path("model", [kernel, bias, keras.Variable(1.0, name="kernel")])


def test_another_shape_or_a_missing_name_is_refused_whole(tmp_path):
    checkpoints.save(tmp_path, 1, make_variables(1.0))
    wanted = make_variables(5.0)
    wanted["model/a/kernel"] = tf.Variable(tf.zeros([3, 3]))
    wanted["model/b"] = tf.Variable(0.0)
    prefix, _ = checkpoints.read(tmp_path, ())
    with pytest.raises(ValueError, match=r"model/a/kernel \(3, 3\).*model/b"):
        checkpoints.restore(prefix, wanted)
    assert float(wanted["state/step"]) == 5.0


def test_another_dtype_is_refused(tmp_path):
    checkpoints.save(tmp_path, 1, make_variables(1.0))
    wanted = make_variables(5.0) | {"model/a/bfloat": tf.Variable([5.0])}
    prefix, _ = checkpoints.read(tmp_path, ())
    message = r"model/a/bfloat \(1,\) float32 \(stored: \[1\] bfloat16\)"
    with pytest.raises(ValueError, match=message):
        checkpoints.restore(prefix, wanted)
    assert float(wanted["state/step"]) == 5.0


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    assert checkpoints.read(tmp_path, ["x"]) == (None, {})
