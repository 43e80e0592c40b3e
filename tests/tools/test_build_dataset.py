"""The program that builds data sets."""

import json

import pytest

from tests.imported_run import run_program
from tests.tools import pairs_to_build


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return pairs_to_build.write(tmp_path_factory.mktemp("source"))


def test_a_data_set_is_built_and_described(source, tmp_path):
    queries = tmp_path / "queries.txt"
    queries.write_text("cat\ndog\n")
    process = run_program(
        "tools.build_dataset",
        f"--source={source[0]}",
        f"--output={tmp_path / 'data'}",
        "--num_shards=2",
        "--max_bad_fraction=0.1",
        f"--evaluation={source[1]}",
        f"--queries={queries}",
        "--max_per_query=5",
        "--json",
        "--",
        "--direct_num_workers=2",
        "--direct_running_mode=multi_threading",
    )
    assert process.returncode == 0, process.stderr
    manifest = json.loads(process.stdout)
    assert manifest == json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert manifest["read"] == pairs_to_build.NUM_GOOD + 7
    assert list(manifest["contaminated"]) == ["copied"]
    assert manifest["dropped"]["duplicate pair"] == 1
    assert 5 <= manifest["examples"] <= 10


def test_mistakes_are_told_in_a_line(source, tmp_path):
    process = run_program(
        "tools.build_dataset", source=source[0], output=tmp_path, tokenized="true"
    )
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert "error: tokenized writes a tokenizer's ids: name a token" in process.stderr
