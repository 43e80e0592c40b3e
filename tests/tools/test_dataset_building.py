"""What is built of a source: the same bytes always, with all that was dropped told."""

import collections
import dataclasses
import hashlib
import json
import signal

import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import dataset_folder, sources, tokenizer
from tests import child_processes
from tests.data.source_files import image_bytes
from tests.tools import pairs_to_build
from tools import dataset_building, dataset_pipeline, dataset_plan

TWO_WORKERS = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return pairs_to_build.write(tmp_path_factory.mktemp("source"))


def request(source, output, **options):
    options = {"num_shards": 3, "max_bad_fraction": 0.1} | options
    return dataset_plan.Request(source[0], str(output), **options)


def read_back(folder, manifest):
    """`{key: (image, texts, labels)}` of a data set."""
    examples = sources.load(f"tfrecord:{folder}/{manifest['files']}")
    counts = examples.caption_counts
    counts = np.ones(len(examples), int) if counts is None else counts
    ends = np.cumsum(counts)
    return {
        key: (
            image,
            examples.captions[end - count : end],
            [examples.label_names[index] for index in labels],
        )
        for key, image, end, count, labels in zip(
            examples.keys, image_bytes(examples), ends, counts, examples.label_sets,
            strict=True,
        )
    }  # fmt: skip


@pytest.fixture(scope="module")
def model():
    letters = [f"{letter} cat pet dog 1 2" for letter in "abcdefghi"]
    return tokenizer.train(letters, 40, "bpe")


@pytest.fixture(scope="module")
def plain(source, tmp_path_factory):
    """`(folder, manifest)` of a data set that is built without options."""
    folder = tmp_path_factory.mktemp("plain")
    manifest, was_there = dataset_building.build(request(source, folder))
    assert not was_there
    return folder, manifest


@pytest.fixture(scope="module")
def filtered(source, tmp_path_factory, model):
    """`(request, folder, manifest)` of one with filters."""
    folder = tmp_path_factory.mktemp("filtered")
    built = request(
        source,
        folder,
        tokenizer=model,
        max_length=8,
        min_side=8,
        distinct="images",
        evaluation=[source[1]],
    )
    return built, folder, dataset_building.build(built)[0]


def test_each_filter_drops_its_own_and_says_so(filtered, source):
    _, folder, manifest = filtered
    assert manifest["read"] == pairs_to_build.NUM_GOOD + 7
    assert manifest["broken"] == {"undecodable image": 1}
    assert manifest["dropped"] == {
        "caption of more than 8 tokens": 1,
        "duplicate image": 1,
        "duplicate pair": 1,
        "image like an evaluation image": 1,
        "image of less than 8 pixels": 1,
    }
    assert manifest["dropped_captions"] == {"caption of more than 8 tokens": 2}
    (match,) = manifest["contaminated"].items()
    assert match[0] == "copied"
    assert (match[1]["source"], match[1]["match"]) == (source[1], "digit/0.png")
    assert 0.5 <= match[1]["score"] < 1
    expected = pairs_to_build.good()
    expected["half long"] = (pairs_to_build.noise(102), ["a dog"], [])
    assert read_back(folder, manifest) == expected
    assert manifest["examples"] == len(expected)
    assert manifest["captions"] == sum(len(texts) for _, texts, _ in expected.values())
    (bad,) = (folder / "bad_examples.jsonl").read_text().splitlines()
    assert json.loads(bad)["key"] == "broken"


def test_the_manifest_describes_the_files(plain):
    folder, manifest = plain
    files = pairs_to_build.contents(folder)
    others = {"arguments.json", "bad_examples.jsonl", "manifest.json"}
    assert {shard["file"] for shard in manifest["shards"]} == files.keys() - others
    for shard in manifest["shards"]:
        content = files[shard["file"]]
        assert shard["bytes"] == len(content)
        assert shard["sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["bytes"] == sum(shard["bytes"] for shard in manifest["shards"])
    assert json.loads(files["manifest.json"]) == manifest
    assert manifest["arguments"]["num_shards"] == 3
    assert json.loads(files["arguments.json"]) == manifest["arguments"]
    # Without a filter all is kept but pairs that have come before.
    assert manifest["dropped"] == {"duplicate pair": 1}


def test_workers_and_their_order_change_no_byte(filtered, tmp_path, monkeypatch):
    built, folder, _ = filtered
    monkeypatch.setattr(dataset_plan, "SLICE", 10)
    again = dataclasses.replace(built, output=str(tmp_path))
    dataset_building.build(again, TWO_WORKERS)
    assert pairs_to_build.contents(folder) == pairs_to_build.contents(tmp_path)


def test_images_and_their_pairs_may_come_again(source, tmp_path):
    manifest, _ = dataset_building.build(
        request(source, tmp_path / "a", distinct="none")
    )
    assert manifest["examples"] == pairs_to_build.NUM_GOOD + 6
    assert manifest["dropped"] == {}


def test_a_query_chooses_no_more_than_its_number(source, tmp_path):
    options = {"queries": ["a cat", "Dog", "bird"], "max_per_query": 4}
    built = request(source, tmp_path / "a", **options)
    manifest, _ = dataset_building.build(built)
    assert manifest["pairs_of_queries"] == {"a cat": pairs_to_build.NUM_GOOD, "Dog": 4}
    kept = read_back(tmp_path / "a", manifest)
    words = collections.Counter(texts[0].split()[1] for _, texts, _ in kept.values())
    assert words == {"cat": 4, "dog": 3, "b": 1}  # the last is "half long"
    assert manifest["dropped"] == {
        "duplicate pair": 1,
        "not among 4 pairs of a query": 27,
    }


def test_tokens_are_those_of_the_captions(source, tmp_path, model):
    options = {"tokenizer": model, "max_length": 8, "tokenized": True}
    dataset_building.build(request(source, tmp_path / "a", **options))
    tokenize = tokenizer.Tokenizer(model, 8)
    features = {
        "texts": tf.io.RaggedFeature(tf.string),
        "token_ids": tf.io.RaggedFeature(tf.int64),
    }
    paths = sorted(map(str, (tmp_path / "a").glob("*.tfrecord")))
    for record in tf.data.TFRecordDataset(paths):
        fields = tf.io.parse_single_example(record, features)
        expected = tokenize(fields["texts"]).numpy()
        ids = fields["token_ids"].numpy().reshape(-1, 8)
        np.testing.assert_array_equal(ids, expected)


KILLED = """
import os, signal, sys
from basic_tf.data import dataset_folder
from tools import dataset_building, dataset_plan
write = dataset_folder.write_shard
def write_and_die(*arguments):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
dataset_folder.write_shard = write_and_die
request = dataset_plan.Request(*sys.argv[1:], num_shards=3, max_bad_fraction=0.1)
dataset_building.build(request)
"""


def test_a_killed_run_that_is_given_again_makes_the_same_bytes(source, plain, tmp_path):
    killed = tmp_path / "killed"
    command = ["-c", KILLED, source[0], str(killed)]
    assert child_processes.run_all([(command, {})]) == [-signal.SIGKILL]
    left = [path.name for path in killed.iterdir()]
    assert sum(name.startswith("shard-") for name in left) == 1
    assert any(name.startswith("partial-") for name in left)
    assert "manifest.json" not in left
    dataset_building.build(request(source, killed))
    assert pairs_to_build.contents(killed) == pairs_to_build.contents(plain[0])


def test_a_finished_folder_is_left_alone_and_other_arguments_refused(
    source, plain, monkeypatch
):
    folder, manifest = plain
    before = pairs_to_build.contents(folder)
    monkeypatch.setattr(sources, "load", None)
    assert dataset_building.build(request(source, folder)) == (manifest, True)
    with pytest.raises(ValueError, match=r"of min_side 1, not 9: name another folder"):
        dataset_building.build(request(source, folder, min_side=9))
    assert pairs_to_build.contents(folder) == before


def test_of_two_runs_at_once_the_slower_takes_what_the_faster_made(
    source, tmp_path, monkeypatch
):
    built = request(source, tmp_path / "a")
    add_steps, faster = dataset_pipeline.build, []

    def wait(pipeline, plan):
        monkeypatch.setattr(dataset_pipeline, "build", add_steps)
        faster.append(dataset_building.build(built))
        add_steps(pipeline, plan)

    monkeypatch.setattr(dataset_pipeline, "build", wait)
    manifest, was_there = dataset_building.build(built)
    assert was_there and faster == [(manifest, False)]
    assert not any(path.is_dir() for path in (tmp_path / "a").iterdir())


def test_a_worker_that_fails_is_told_in_a_line_and_leaves_no_part(
    source, tmp_path, monkeypatch
):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(dataset_folder, "write_shard", fail)
    with pytest.raises(ValueError, match=r"^the pipeline failed: .*no space left"):
        dataset_building.build(request(source, tmp_path / "a"))
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["arguments.json"]


def test_too_many_broken_examples_stop_it_before_a_shard_is_written(source, tmp_path):
    with pytest.raises(ValueError, match=r"1 of 37 examples are broken, more than"):
        dataset_building.build(request(source, tmp_path / "a", max_bad_fraction=0.01))
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["arguments.json"]


def test_a_data_set_of_nothing_is_refused_with_the_reasons(source, tmp_path):
    with pytest.raises(ValueError, match="no example is left; dropped 36 image of l"):
        dataset_building.build(request(source, tmp_path / "a", min_side=999))


def test_what_cannot_be_is_refused_at_once(source, tmp_path):
    with pytest.raises(ValueError, match="name a tokenizer"):
        request(source, tmp_path, tokenized=True)
    with pytest.raises(ValueError, match="no query holds a word"):
        request(source, tmp_path, queries=[])
