"""Several replicas take the step of one, in processes of their own."""

import json
import pathlib

import ml_dtypes
import numpy as np
import pytest

from basic_tf.training import distribution, run_log
from tests import child_processes
from tests.training.interrupted_run import final_variables
from tests.training.replicated_steps import ADAFACTORW_RATE, CLIP_NORM

REPLICAS = "state.Snum_replicas/.ATTRIBUTES/VARIABLE_VALUE"
PROGRAM = pathlib.Path(__file__).parent / "replicated_steps.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicas")
    commands = [([PROGRAM, folder, replicas], {}) for replicas in ("2", "4")]
    assert child_processes.run_all(commands) == [0, 0]
    return folder


def read_both(folder, *names):
    ours, theirs = (dict(np.load(folder / f"{name}.npz")) for name in names)
    assert ours.keys() == theirs.keys() and len(ours) > 10
    return [(name, values, theirs[name]) for name, values in ours.items()]


def assert_equal_weights(folder, ours, theirs):
    for name, values, expected in read_both(folder, ours, theirs):
        # Sums in another order: float32 rounding through two steps.
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_with_dropout_and_batch_norm_take_the_step_of_one(folder, replicas):
    assert_equal_weights(folder, f"contrastive_{replicas}", "contrastive_1")


@pytest.mark.parametrize("mode", ["weightless", "block"])
def test_replicas_that_compute_activations_again_take_the_step_of_one_that_keeps_them(
    folder, mode
):
    assert_equal_weights(folder, f"{mode}_2", "contrastive_1")


def test_replicas_take_the_supervised_step_of_one(folder):
    assert_equal_weights(folder, "supervised_2", "supervised_1")


@pytest.mark.parametrize("steps", ["buffer", "slots", "clipped", "skipped"])
def test_replicas_leave_the_weights_and_slots_of_one_by_adafactorw(folder, steps):
    """Of these encoders no weight's gradient is zero but for rounding.

    Such a one, as of a bias before batch norm, AdaFactor's epsilon of 1e-30 would let
    walk at random. Rows of tokens that do not occur have no gradient at all.
    """
    num_unequal = num_momenta = 0
    for name, values, expected in read_both(folder, f"{steps}_2", f"{steps}_1"):
        options = {"err_msg": name}
        if name.endswith("momentum"):
            # Float32 sums in another order may fall on the other side of a border of
            # bfloat16: one unit in the last place, at most 2^-7, and seldom.
            np.testing.assert_array_equal(values, values.astype(ml_dtypes.bfloat16))
            np.testing.assert_allclose(values, expected, rtol=2**-7, **options)
            num_unequal += np.sum(values != expected)
            num_momenta += values.size
        elif name.startswith("slot"):
            # Squares of gradients, which differ by 1e-5 of the largest at most.
            largest = abs(expected).max()
            options |= {"rtol": 1e-4, "atol": 1e-6 * largest}
            np.testing.assert_allclose(values, expected, **options)
        else:
            # The first of two steps is less than half of the moment of the second: a
            # unit of 2^-7 moves a weight by 2^-8 of a step.
            tolerance = ADAFACTORW_RATE * 2**-8
            np.testing.assert_allclose(values, expected, atol=tolerance, **options)
    assert num_momenta > 400 and num_unequal < 0.02 * num_momenta


def test_a_gradient_that_is_not_finite_on_one_replica_is_skipped_by_all(folder):
    values = np.load(folder / "skipped_2.npz")
    assert values["skipped"] == 1
    assert all(np.isfinite(values[name]).all() for name in values.files)


def test_replicas_clip_the_gradient_of_all_together(folder):
    def norm(name):
        values = np.load(folder / f"{name}.npz")
        momenta = [values[n] for n in values.files if n.endswith("momentum")]
        return np.sqrt(sum(np.sum(each**2) for each in momenta))

    longest = (1 - 0.9**2) * CLIP_NORM  # of two steps in the same direction
    assert 0.5 * longest < norm("clipped_2") < 1.01 * longest < norm("buffer_2")


def test_batch_norm_over_all_replicas_is_that_of_the_whole_batch(folder):
    assert_equal_weights(folder, "global_2", "global_1")


def test_two_processes_take_the_step_of_one(folder):
    ports = child_processes.free_ports(2)
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    configurations = [
        json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        for index in range(2)
    ]
    statuses = child_processes.run_all(
        ([PROGRAM, folder, "multi_worker"], {"TF_CONFIG": configuration})
        for configuration in configurations
    )
    assert statuses == [0, 0]
    assert_equal_weights(folder, "multi_worker", "contrastive_1")


def test_a_run_on_replicas_that_is_killed_ends_as_that_of_one_device(tmp_path):
    command = [PROGRAM.with_name("replicated_run.py"), tmp_path / "data", tmp_path]
    assert child_processes.run_all([(command, {})]) == [0]
    two, one = (final_variables(tmp_path / name) for name in ("two", "one"))
    assert two.keys() == one.keys()
    replicas = [values.pop(REPLICAS) for values in (two, one)]
    assert replicas == [2, 1]
    for name, value in two.items():
        np.testing.assert_allclose(value, one[name], 1e-5, 1e-5, err_msg=name)
    rows = [run_log.read_rows(tmp_path / name) for name in ("two", "one")]
    for ours, theirs in zip(*rows, strict=True):
        assert ours["step"] == theirs["step"]
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)


def test_machines_that_nothing_names_are_asked_for(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match=r"multi_worker needs .* TF_CONFIG, such as"):
        distribution.make_strategy("multi_worker")
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(ValueError, match=r"finds no TPU; set the .* TPU_NAME"):
        distribution.make_strategy("tpu")


def test_an_unknown_strategy_names_the_known_ones():
    with pytest.raises(ValueError, match="'gpu' is none of default, mirrored, multi"):
        distribution.make_strategy("gpu")
