"""Trains a tiny run on a mesh, to its end or until it is killed.

`python sharded_run.py DATA WORKDIR MESH [STEP]`; MESH "none" for one device. A process
of its own: devices are made once, and a process keeps to one mesh.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf

from basic_tf.training import distribution, loop, mesh, sharding
from tests.tiny_run import tiny_config
from tests.training.interrupted_run import train_until

# Those without a gradient, which rounding would move: an optimizer takes its sign.
STILL = r"/key/bias$|/block/norm/beta$"


def main(data, workdir, text, step="0"):
    tf.config.experimental.enable_op_determinism()
    config = tiny_config(data)
    config.phase_order = ("joint",)
    config.phases.joint.steps = 4
    config.phases.joint.rules = ((STILL, {"train": False}), (rf"^(?!.*({STILL}))", {}))
    devices = None
    if text != "none":
        distribution.split_cpu(mesh.parse(text)[1])
        devices = mesh.make_mesh(text, "CPU")
        sharding.MIN_SPLIT_SIZE = 64
    if int(step):
        with pytest.MonkeyPatch.context() as patch:
            train_until(patch, config, pathlib.Path(workdir), int(step), devices)
    else:
        loop.train(config, workdir, devices)


if __name__ == "__main__":
    main(*sys.argv[1:])
