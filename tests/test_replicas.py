"""Gathered values, sums and means of two replicas, counted on the fingers."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from basic_tf import replicas
from tests import child_processes

PROGRAM = pathlib.Path(__file__).parent / "replicated_values.py"


@pytest.fixture(scope="module")
def replicated(tmp_path_factory):
    """Values of both replicas, and the message outside of any."""
    file = tmp_path_factory.mktemp("replicas") / "values.json"
    assert child_processes.run_all([([PROGRAM, file], {})], 120) == [0]
    return json.loads(file.read_text())


def test_replicas_gather_in_their_order(replicated):
    for index, values in enumerate(replicated[:2]):
        assert (values["count"], values["index"]) == (2, index)
        assert values["gathered"] == [0, 10, 1, 11]


def test_sums_and_means_are_those_over_both_replicas_on_each(replicated):
    for values in replicated[:2]:
        assert values["total"] == {"a": 1 + 2, "b": [0 + 1]}
        assert values["mean"] == {"a": 1.5, "b": [0.5]}
        assert values["nothing"] == []


def test_a_replica_assigns_its_own_copy_of_a_variable(replicated):
    assert [values["own"] for values in replicated[:2]] == [0.0, 10.0]


def test_outside_of_a_replica_the_others_are_refused(replicated):
    assert replicated[2] == "this must run in a replica, by strategy.run or fit"


def test_one_replica_keeps_every_value():
    one = replicas.current()
    assert (one.count, one.index) == (1, 0)
    values = {"a": tf.constant([1.0, 3.0]), "b": [tf.constant(0.1)]}
    for same in (one.gather(values), one.total(values), one.mean(values)):
        tf.nest.map_structure(np.testing.assert_array_equal, same, values)
