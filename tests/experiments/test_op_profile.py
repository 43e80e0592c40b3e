"""The table of a profile: of one written by hand, and of a step that is run."""

import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from experiments.studies import op_profile


def space_of(*threads):
    """A profile of events `(kind, microseconds)`; other events have no kind."""
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name="/host:CPU")
    for thread in threads:
        line = plane.lines.add()
        for kind, microseconds in thread:
            key = len(plane.event_metadata)
            plane.event_metadata[key].display_name = kind
            line.events.add(metadata_id=key, duration_ps=microseconds * 10**6)
    return space


def test_operations_are_added_up_over_threads():
    space = space_of([("Mul", 30), ("", 1000), ("MatMul", 40)], [("Mul", 30)])
    assert op_profile.of_space(space) == [
        {"operation": "Mul", "count": 2, "seconds": 6e-5, "share": 0.6},
        {"operation": "MatMul", "count": 1, "seconds": 4e-5, "share": 0.4},
    ]


def test_a_profile_without_operations_is_refused():
    with pytest.raises(ValueError, match="the profile has no operations on /host:CPU"):
        op_profile.of_space(space_of([("", 1000)]))


def test_the_operations_of_a_step_are_counted():
    @tf.function
    def step(matrix):
        return tf.math.erf(matrix @ matrix) @ matrix

    matrix = tf.random.normal((64, 64))
    step(matrix)
    counts = {
        row["operation"]: row["count"] for row in op_profile.operations(step, (matrix,))
    }
    assert (counts["Erf"], counts["MatMul"]) == (1, 2)


def test_a_summary_names_the_longest():
    rows = op_profile.of_space(space_of([("Mul", 30), ("MatMul", 40), ("Erf", 30)]))
    assert op_profile.summary(rows, 2) == "MatMul 40% (1), Mul 30% (1)"


def test_a_plot_has_a_bar_for_each_of_the_longest():
    rows = op_profile.of_space(space_of([("Mul", 25), ("MatMul", 75)]))
    (axes,) = op_profile.plot(rows).axes
    assert [bar.get_height() for bar in axes.patches] == [0.75, 0.25]
