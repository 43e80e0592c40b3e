import json

import pytest
import tiny_run

from basic_tf.training import run_data
from tests.data.source_files import cut_jpeg, picture, write_tar


@pytest.fixture
def config(tmp_path):
    """A tiny run on two shards, whose second holds a truncated photograph."""
    for shard in range(2):
        members = {}
        for number in range(10):
            members[f"{number}.png"] = picture("red")
            members[f"{number}.txt"] = f"a red square {shard} {number}"
        if shard == 1:
            members["4.png"] = cut_jpeg()
        write_tar(tmp_path / f"{shard}.tar", members)
    config = tiny_run.tiny_config(tmp_path)
    config.data.train = f"webdataset:{tmp_path}/{{0..1}}.tar"
    config.tokenizer.vocabulary_size = 40
    return config


def load(config, folder):
    examples, _ = run_data.load(config, folder)
    path = folder / "bad_examples.jsonl"
    return examples, [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_broken_is_listed_and_the_rest_is_trained_on(config, tmp_path, caplog):
    config.data.max_bad_fraction = 0.05
    examples, listed = load(config, tmp_path)
    assert len(examples) == len(examples.pixels) == 19
    assert "a red square 1 4" not in examples.captions
    reason = "undecodable image"
    assert listed == [{"file": f"{tmp_path}/1.tar", "key": "4", "reason": reason}]
    assert f"skipped 1 {reason} ({tmp_path}/1.tar, 4), all listed in" in caplog.text
    load(config, tmp_path)
    assert "than when the run began" not in caplog.text


def test_pixels_are_not_kept_where_every_phase_crops_whole_images(config, tmp_path):
    config.data.max_bad_fraction = 0.05
    for phase in config.phases.values():
        phase.augmentation = {"crop": {}}
    examples, _ = load(config, tmp_path)
    assert len(examples) == 19 and examples.pixels is None


def test_too_much_that_is_broken_stops_the_run_after_it_is_listed(config, tmp_path):
    message = "1 of 20 examples are broken, .*; mend them, or raise data.max_bad_fract"
    with pytest.raises(ValueError, match=message):
        load(config, tmp_path)
    assert (tmp_path / "bad_examples.jsonl").read_text().count("\n") == 1


def test_other_broken_examples_than_before_are_announced(config, tmp_path, caplog):
    config.data.max_bad_fraction = 0.5
    load(config, tmp_path)
    write_tar(tmp_path / "0.tar", {"0.png": picture(), "0.txt": "x", "1.txt": "y"})
    load(config, tmp_path)
    assert "other examples are broken than when the run began" in caplog.text


def test_a_mixture_is_a_list_of_sources_and_weights(config, tmp_path):
    folder = tmp_path / "classes/square"
    folder.mkdir(parents=True)
    (folder / "0.png").write_bytes(picture("blue"))
    config.data = {
        "train": ((config.data.train, 0.75), (f"folder:{tmp_path}/classes", 0.25)),
        "data_dir": "",
        "max_bad_fraction": 0.05,
    }
    examples, _ = load(config, tmp_path)
    assert examples.groups() == [(19, 0.75), (1, 0.25)]
    assert examples.captions[-1] == "square"
