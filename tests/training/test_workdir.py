import pytest
import tiny_run

from basic_tf.training import loop, workdir


def test_another_configuration_is_refused_by_name(tmp_path):
    config = tiny_run.tiny_config("data")
    workdir.claim(tmp_path, config)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/step-00000002.index").touch()
    workdir.claim(tmp_path, config)
    config.phases.joint.steps = 7
    with pytest.raises(ValueError, match=r"phases\.joint\.steps \(there 6, now 7\)"):
        workdir.claim(tmp_path, config)


def test_two_runs_into_one_workdir_are_refused(tmp_path):
    with (
        workdir.exclusive(tmp_path),
        pytest.raises(ValueError, match="another process is training"),
    ):
        loop.train(tiny_run.tiny_config(tmp_path), tmp_path)


def test_the_lock_ends_with_its_holder(tmp_path):
    for _ in range(2):
        with workdir.exclusive(tmp_path):
            pass
