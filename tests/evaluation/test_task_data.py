import pathlib

import pytest

from basic_tf.evaluation import task_data


def test_relative_paths_are_of_the_folder_of_the_data(tmp_path, monkeypatch):
    def resolve(source):
        return task_data.resolve(source, tmp_path)

    assert resolve("folder:birds/test") == f"folder:{tmp_path}/birds/test"
    assert resolve("csv:a.csv?image=x") == f"csv:{tmp_path}/a.csv?image=x"
    assert resolve("folder:/data/birds") == "folder:/data/birds"
    for source in ("tfds:mnist:test", "webdataset:gs://bucket/{0..9}.tar"):
        assert resolve(source) == source
    monkeypatch.setenv("TFDS_DATA_DIR", "/elsewhere")
    assert task_data.folder() == task_data.folder("") == pathlib.Path("/elsewhere")
    monkeypatch.delenv("TFDS_DATA_DIR")
    assert task_data.folder() == pathlib.Path.home() / "tensorflow_datasets"


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("tfds:mnist:test", "mnist/3.0.1/dataset_info.json"),
        ("tfds:voc/2007:test", "voc/2007/5.0.0/dataset_info.json"),
        ("folder:birds", "birds/x.png"),
        ("csv:a.csv?image=x", "a.csv"),
        ("webdataset:shards/{00..01}.tar", "shards/01.tar"),
    ],
)
def test_data_are_here_once_they_are_whole(tmp_path, source, file):
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/00.tar").touch()
    assert not task_data.is_here(source, tmp_path)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    assert task_data.is_here(source, tmp_path)


def test_the_glyphs_are_drawn_wherever_they_are_missing(tmp_path):
    assert task_data.is_here("tfds:glyphs/concepts:serif", tmp_path)
    task_data.require("serif", {"source": "tfds:glyphs/concepts:serif"}, tmp_path)


def test_what_to_get_is_said(tmp_path):
    task = {"source": "folder:birds", "download": "get the birds"}
    with pytest.raises(ValueError) as error:
        task_data.require("birds", task, tmp_path)
    assert str(error.value) == f"birds: no data in {tmp_path}/birds; get the birds"
