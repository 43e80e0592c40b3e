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


def test_checkpoints_without_their_configuration_are_left_alone(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/step-00000002.index").touch()
    (tmp_path / "tokenizer.model").write_bytes(b"vocabulary")
    with pytest.raises(
        ValueError, match=r"holds checkpoints, tokenizer\.model but not"
    ):
        workdir.claim(tmp_path, tiny_run.tiny_config("data"))
    assert (tmp_path / "tokenizer.model").read_bytes() == b"vocabulary"


def test_a_folder_without_a_checkpoint_is_cleared_of_an_earlier_run(tmp_path):
    workdir.claim(tmp_path, tiny_run.tiny_config("other"))
    for name in workdir.DERIVED_FILES:
        (tmp_path / name).touch()
    (tmp_path / "events").mkdir()
    (tmp_path / "notes.txt").touch()
    workdir.claim(tmp_path, tiny_run.tiny_config("data"))
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"config.json", "notes.txt"}


@pytest.mark.parametrize("name", ["config.json", "report.html", "tokenizer.model"])
def test_a_folder_that_is_no_runs_keeps_its_files(tmp_path, name):
    (tmp_path / name).write_text('{"theirs": 1}')
    with pytest.raises(ValueError, match=f"holds {name} but not the configuration"):
        workdir.claim(tmp_path, tiny_run.tiny_config("data"))
    assert (tmp_path / name).read_text() == '{"theirs": 1}'
