"""What was imported is written back bit for bit, and can be imported again."""

import json

import numpy as np
import pytest
import safetensors.numpy
import tiny_run

from basic_tf.training import loaded_run
from tests.imported_run import VOCABULARY, import_run, run_program


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    return import_run(tmp_path_factory.mktemp("imported"))


@pytest.fixture(scope="module")
def exported(imported, tmp_path_factory):
    """The file, in a folder that was not there."""
    path = tmp_path_factory.mktemp("exported") / "new" / "open_clip_model.safetensors"
    process = run_program("tools.export_weights", workdir=imported[0], output=path)
    assert process.returncode == 0, process.stderr
    return path


def test_the_weights_come_back_bit_for_bit(imported, exported):
    _, expected = imported
    actual = safetensors.numpy.load_file(exported)
    assert actual.keys() == expected.keys()
    for name, array in actual.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_what_was_exported_is_imported_as_the_same_run(imported, exported, tmp_path):
    (tmp_path / "vocabulary.txt").write_bytes(VOCABULARY)
    process = run_program(
        "tools.import_weights",
        weights=exported,
        model=exported.with_name("open_clip_config.json"),
        vocabulary=tmp_path / "vocabulary.txt",
        workdir=tmp_path / "run",
    )
    assert process.returncode == 0, process.stderr
    first, again = loaded_run.load(imported[0]), loaded_run.load(tmp_path / "run")
    assert again.config.model == first.config.model
    assert again.config.model.image_encoder.mean == [0.5, 0.4, 0.3]
    for ours, theirs in zip(again.model.variables, first.model.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)


def refused(**values):
    """The line that the program ends with."""
    process = run_program("tools.export_weights", **values)
    assert process.returncode == 1 and "Traceback" not in process.stderr
    (line,) = [row for row in process.stderr.splitlines() if row.startswith("error: ")]
    return line


def test_a_run_that_is_no_clip_is_refused(tmp_path):
    tiny_run.write_untrained_run(tmp_path)
    line = refused(workdir=tmp_path, output=tmp_path / "a.safetensors")
    assert f"{tmp_path} is no CLIP: its tokenizer is its own" in line
    assert not (tmp_path / "a.safetensors").exists()


def test_a_file_that_is_there_is_kept(imported, exported):
    before = exported.read_bytes()
    line = refused(workdir=imported[0], output=exported)
    assert f"{exported} is there already; name a file in another folder" in line
    description = exported.with_name("open_clip_config.json")
    other = exported.with_name("other.safetensors")
    line = refused(workdir=imported[0], output=other)
    assert f"{description} is there already" in line
    assert exported.read_bytes() == before and not other.exists()
    assert json.loads(description.read_text())["model_cfg"]["embed_dim"] == 32


def test_a_name_that_open_clip_would_read_otherwise_is_refused(imported, tmp_path):
    line = refused(workdir=imported[0], output=tmp_path / "a.pt")
    assert "a.pt must end in .safetensors" in line
