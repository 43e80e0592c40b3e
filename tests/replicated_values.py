"""Writes what two replicas know of each other into a JSON file.

`python replicated_values.py FILE`. A process of its own: devices are made once.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

from basic_tf import replicas
from basic_tf.training import distribution


def values_of_replica(variable):
    """Of replica r: `[r, 10 + r]` gathered; sums and means of `r + 1` and `r^2`."""
    ours = replicas.current()
    index = tf.cast(ours.index, tf.float32)
    replicas.own(variable).assign(10 * index)
    nested = {"a": index + 1, "b": [index**2]}
    return {
        "count": tf.constant(ours.count),
        "index": ours.index,
        "gathered": ours.gather(tf.stack([index, 10 + index])),
        "total": ours.total(nested),
        "mean": ours.mean(nested),
        "own": tf.identity(variable.value),
        "nothing": ours.total([]),
    }


def main(file):
    distribution.split_cpu(2)
    strategy = distribution.make_strategy("mirrored")
    with strategy.scope():
        variable = keras.Variable(7.0)
    values = tf.function(lambda: strategy.run(values_of_replica, (variable,)))()

    def of_replica(index):
        return tf.nest.map_structure(
            lambda value: (
                strategy.experimental_local_results(value)[index].numpy().tolist()
            ),
            values,
        )

    result = [of_replica(0), of_replica(1)]
    with strategy.scope():
        try:
            replicas.current()
        except ValueError as error:
            result.append(str(error))
    pathlib.Path(file).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
