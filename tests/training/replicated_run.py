"""Trains a tiny run on one device, and on two replicas that are killed on the way.

`python replicated_run.py DATA FOLDER`, which makes FOLDER/one and FOLDER/two. A process
of its own: devices are made once.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf

from basic_tf.training import distribution, loop
from tests.tiny_run import tiny_config
from tests.training.interrupted_run import train_until

KILLED_AT = 8  # of 18 steps: in the second of three phases


def main(data, folder):
    tf.config.experimental.enable_op_determinism()
    distribution.split_cpu(2)
    config = tiny_config(data)
    for phase in config.phases.values():  # the same microbatches on either
        phase.microbatch_image = phase.microbatch_text = 4
        phase.optimizer, phase.learning_rate = "lars", 0.1  # heeds no rounding
        phase.augmentation = {}  # its random numbers are those of a replica
    loop.train(config, f"{folder}/one")
    with distribution.make_strategy("mirrored").scope():
        with pytest.MonkeyPatch.context() as patch:
            train_until(patch, config, pathlib.Path(folder) / "two", KILLED_AT)
        loop.train(config, f"{folder}/two")


if __name__ == "__main__":
    main(*sys.argv[1:])
