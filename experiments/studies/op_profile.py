"""Which kinds of operation a step spends its time on, by TensorFlow's own profiler."""

import collections
import pathlib
import tempfile

import tensorflow as tf
from matplotlib import figure
from tensorflow.tsl.profiler.protobuf import xplane_pb2

HOST = "/host:CPU"
PICOSECONDS = 1e-12


def operations(function, arguments):
    """What a call spends on each kind of operation.

    Args:
        function: a `tf.function`, called before: the first call has more to do.
        arguments: tuple.

    Returns:
        List of `{"operation", "count", "seconds", "share"}`, the longest first, as
        `of_space`.

    Raises:
        ValueError: if the profiler has seen no operation on the CPU.
    """
    with tempfile.TemporaryDirectory() as directory:
        tf.profiler.experimental.start(directory)
        try:
            tf.nest.flatten(function(*arguments))[0].numpy()  # waits for it
        finally:
            tf.profiler.experimental.stop()
        (path,) = pathlib.Path(directory).rglob("*.xplane.pb")
        return of_space(xplane_pb2.XSpace.FromString(path.read_bytes()))


def of_space(space):
    """The table of a profile.

    Seconds are added up over the threads, on which operations run side by side, and
    shares are of their sum. A kind is an op type after the graph's rewrites, such as
    `_FusedConv2D`.

    Args:
        space: `XSpace` of one profiled step.

    Returns, raises: as `operations`.
    """
    seconds, counts = collections.Counter(), collections.Counter()
    for plane in space.planes:
        if plane.name != HOST:
            continue
        # The profiler gives an op its type to be displayed, other events nothing.
        kinds = {key: kind.display_name for key, kind in plane.event_metadata.items()}
        for event in (event for line in plane.lines for event in line.events):
            if kind := kinds[event.metadata_id]:
                seconds[kind] += event.duration_ps * PICOSECONDS
                counts[kind] += 1
    if not seconds:
        raise ValueError(f"the profile has no operations on {HOST}")
    total = sum(seconds.values())
    return [
        {
            "operation": kind,
            "count": counts[kind],
            "seconds": round(taken, 6),
            "share": round(taken / total, 4),
        }
        for kind, taken in seconds.most_common()
    ]


def summary(rows, num_kinds=6):
    """The kinds that take longest, in words."""
    return ", ".join(
        f"{row['operation']} {row['share']:.0%} ({row['count']})"
        for row in rows[:num_kinds]
    )


def plot(rows, num_kinds=20):
    """Bars of the kinds that take longest."""
    drawn = figure.Figure(figsize=(8, 4))
    axes = drawn.subplots()
    top = rows[:num_kinds]
    axes.bar([row["operation"] for row in top], [row["share"] for row in top])
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylabel("share of the operations' time")
    return drawn
