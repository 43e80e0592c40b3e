"""A step on a mesh leaves what the step of one device leaves, in parts."""

import functools
import pathlib
import types

import numpy as np
import pytest

from basic_tf.training import sharding
from tests import child_processes
from tests.training.interrupted_run import final_variables

PROGRAM = pathlib.Path(__file__).parent / "sharded_steps.py"
MESHES = {  # the cases that one process tries
    "model:4": ("supervised", "microbatches", "weightless"),
    "model:8": ("block",),
    "batch:2,model:2": ("plain", "weightless in one piece"),
}
CASES = [(mesh, case) for mesh, cases in MESHES.items() for case in cases]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    @functools.cache
    def folder_of(mesh):
        folder = tmp_path_factory.mktemp("sharded")
        command = [PROGRAM, folder, mesh, *MESHES[mesh]], {}
        assert child_processes.run_all([command], timeout=600) == [0]
        return folder

    return folder_of


@pytest.fixture(params=CASES, ids="-".join)
def result(request, folder_of):
    mesh, case = request.param
    values = dict(np.load(folder_of(mesh) / f"{case}.npz"))
    return values | {"shards": int(mesh[-1])}


def test_every_weight_moment_and_statistic_is_that_of_one_device(result):
    names = [name.removeprefix("ours ") for name in result if name.startswith("ours ")]
    assert len(names) > 100
    for name in names:
        # Sums in another order: float32 rounding through five steps.
        np.testing.assert_allclose(
            result[f"ours {name}"],
            result[f"theirs {name}"],
            rtol=1e-5,
            atol=1e-5,
            err_msg=name,
        )


def test_every_trained_weight_moves_and_no_other(result):
    """An update that is lost, as DTensor may lose it, leaves its weight in place."""
    for name, start in result.items():
        if name.startswith(("start weight", "start frozen")):
            still = np.array_equal(start, result[name.replace("start", "ours")])
            assert still == name.startswith("start frozen"), name


def test_weights_and_moments_rest_in_parts(result):
    assert result["split"] > 20
    # Of so small a model much is whole.
    assert result["share"] < 0.45 + 1 / result["shards"]


def variable(path, *shape):
    return types.SimpleNamespace(path=path, shape=shape)


@pytest.mark.parametrize(
    "path, shape, axis",
    [
        ("stage0/conv0/kernel", (3, 3, 8, 16), 2),  # input channels
        ("stage0/conv0/kernel", (3, 3, 3, 16), 3),  # which 4 does not divide
        ("block/attention/query/kernel", (8, 12), 0),
        ("token_embedding/embeddings", (12, 8), 0),
        ("token_embedding/embeddings", (13, 8), 1),
        ("dense/kernel", (7, 9), None),
        ("block/norm/gamma", (8,), None),
        ("block/depthwise/kernel", (3, 3, 8, 4), None),
        ("block/se/reduce/kernel", (1, 1, 8, 4), None),
        ("block/attention/relative_bias", (4, 8, 8), None),
        ("dense/bias", (16,), None),
    ],
)
def test_input_channels_are_split_or_the_next_axis_that_divides(path, shape, axis):
    assert sharding.split_axes([variable(path, *shape)], 4, min_size=1) == [axis]


def test_what_is_small_is_not_split():
    variables = [variable("dense/kernel", 8, 8), variable("dense/kernel", 128, 128)]
    assert sharding.split_axes(variables, 4) == [None, 0]


def test_a_run_that_is_killed_goes_on_on_another_mesh(tmp_path):
    program, data = PROGRAM.parent / "sharded_run.py", tmp_path / "data"

    def run(*arguments):
        return child_processes.run_all([([program, data, *arguments], {})], timeout=600)

    assert run(tmp_path / "whole", "none") == [0]
    assert run(tmp_path / "killed", "model:2", "3") == [0]
    assert run(tmp_path / "killed", "model:4") == [0]
    ours, theirs = (final_variables(tmp_path / name) for name in ("killed", "whole"))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(
            value, theirs[name], rtol=1e-5, atol=1e-5, err_msg=name
        )
