"""A folder is one data set's, and holds whole files alone."""

import hashlib
import json

import pytest
import tensorflow as tf

from basic_tf.data import dataset_folder


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "data")


def names(folder):
    return sorted(tf.io.gfile.listdir(folder))


def take(folder, **arguments):
    with dataset_folder.partial_folder(folder) as partial:
        dataset_folder.take(folder, arguments, partial)


def finish(folder, manifest, **arguments):
    with dataset_folder.partial_folder(folder) as partial:
        dataset_folder.finish(folder, arguments, manifest, "bad\n", partial)


def test_a_folder_is_finished_once_its_manifest_is_there(folder):
    assert dataset_folder.read_manifest(folder, {"seed": 0}) is None
    take(folder, seed=0)
    assert dataset_folder.read_manifest(folder, {"seed": 0}) is None
    finish(folder, {"examples": "ü"}, seed=0)
    assert dataset_folder.read_manifest(folder, {"seed": 0}) == {"examples": "ü"}
    assert names(folder) == ["arguments.json", "bad_examples.jsonl", "manifest.json"]


def test_other_arguments_are_refused_and_named(folder):
    take(folder, seed=0, source="a")
    for refused in (take, lambda *_, **arguments: finish(folder, {}, **arguments)):
        with pytest.raises(ValueError, match=r"of seed 0, not 1: name another folder"):
            refused(folder, seed=1, source="a")
    take(folder, seed=0, source="a")


def test_of_two_that_take_a_folder_at_once_one_is_refused(folder, monkeypatch):
    write_whole = dataset_folder.write_whole

    def write_later(folder, name, content, partial, overwrite=True):
        write_whole(folder, name, json.dumps({"seed": 1}), partial)
        write_whole(folder, name, content, partial, overwrite)

    monkeypatch.setattr(dataset_folder, "write_whole", write_later)
    with pytest.raises(ValueError, match="seed 1, not 0"):
        take(folder, seed=0)


def test_what_killed_runs_left_goes_in_the_end(folder):
    take(folder, seed=0)
    left = dataset_folder.partial_folder(folder)
    with tf.io.gfile.GFile(f"{left.__enter__()}/shard", "w") as file:
        file.write("half of a")
    finish(folder, {}, seed=0)
    assert names(folder) == ["arguments.json", "bad_examples.jsonl", "manifest.json"]
    with pytest.raises(OSError, match="full"):  # a run that fails removes its own
        left.gen.throw(OSError("full"))


def test_a_shard_is_there_whole_or_not_at_all(folder):
    def records():
        yield b"one"
        assert not tf.io.gfile.exists(f"{folder}/0.tfrecord")
        yield b"three"

    with dataset_folder.partial_folder(folder) as partial:
        told = dataset_folder.write_shard(folder, "0.tfrecord", records(), partial)
        with pytest.raises(ZeroDivisionError):
            broken = (b"x" * (1 // (1 - i)) for i in range(2))
            dataset_folder.write_shard(folder, "1.tfrecord", broken, partial)
    assert names(folder) == ["0.tfrecord"]
    content = tf.io.gfile.GFile(f"{folder}/0.tfrecord", "rb").read()
    assert told == {
        "file": "0.tfrecord",
        "examples": 2,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    read = tf.data.TFRecordDataset(f"{folder}/0.tfrecord").as_numpy_iterator()
    assert list(read) == [b"one", b"three"]


def test_the_pattern_stands_for_all_shards():
    assert dataset_folder.shard_name(3, 16) == "shard-00003-of-00016.tfrecord"
    assert dataset_folder.shard_pattern(16) == (
        "shard-{00000..00015}-of-00016.tfrecord"
    )
