"""Several replicas take the step of one, in processes of their own."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest

from basic_tf.training import distribution

PROGRAM = pathlib.Path(__file__).parent / "replicated_steps.py"
ROOT = PROGRAM.parents[2]


def start(folder, replicas, **environment):
    command = [sys.executable, str(PROGRAM), str(folder), replicas]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.Popen(command, env=environment, cwd=ROOT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicas")
    for replicas in ("2", "4"):
        assert start(folder, replicas).wait(300) == 0
    return folder


def assert_equal_weights(folder, ours, theirs):
    ours, theirs = (dict(np.load(folder / f"{name}.npz")) for name in (ours, theirs))
    assert ours.keys() == theirs.keys() and len(ours) > 10
    for name, values in ours.items():
        # Sums in another order: float32 rounding through two steps.
        np.testing.assert_allclose(
            values, theirs[name], rtol=1e-5, atol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_with_dropout_and_batch_norm_take_the_step_of_one(folder, replicas):
    assert_equal_weights(folder, f"contrastive_{replicas}", "contrastive_1")


def test_replicas_take_the_supervised_step_of_one(folder):
    assert_equal_weights(folder, "supervised_2", "supervised_1")


def test_batch_norm_over_all_replicas_is_that_of_the_whole_batch(folder):
    assert_equal_weights(folder, "global_2", "global_1")


def test_two_processes_take_the_step_of_one(folder):
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    workers = [f"127.0.0.1:{port}" for port in ports]
    processes = [
        start(
            folder,
            "multi_worker",
            TF_CONFIG=json.dumps(
                {
                    "cluster": {"worker": workers},
                    "task": {"type": "worker", "index": index},
                }
            ),
        )
        for index in range(2)
    ]
    try:
        assert [process.wait(300) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
    assert_equal_weights(folder, "multi_worker", "contrastive_1")


def test_an_unknown_strategy_names_the_known_ones():
    with pytest.raises(ValueError, match="'gpu' is none of default, mirrored, multi"):
        distribution.make_strategy("gpu")
