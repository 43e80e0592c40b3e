"""Trains a model, or goes on with a run that was interrupted.

Examples:
  python -m experiments.train --config experiments/configs/glyphs.py --workdir runs/a
  python -m experiments.train --config experiments/configs/glyphs.py:scratch \\
      --config.phases.scratch.batch_size=512 --workdir runs/b
  python -m experiments.train --config experiments/configs/glyphs.py --workdir runs/c \\
      --strategy mirrored
  python -m experiments.train --config experiments/configs/glyphs.py:scratch \\
      --workdir runs/e --strategy spmd --mesh model:2 --logical_cpus 2
  python -m experiments.train --workdir runs/d \\
      --config experiments/configs/finetune.py:runs/a,csv:pairs.csv
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from absl import flags
from ml_collections import config_flags

from basic_tf.training import distribution, loop, mesh
from experiments import command_line

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "The experiment, FILE[:ARGUMENT].", lock_config=True
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_STRATEGY = flags.DEFINE_enum(
    "strategy",
    "default",
    [*distribution.STRATEGIES, "spmd"],
    "Devices to train on: one; all GPUs of this machine; the machines of TF_CONFIG; a "
    "TPU; those of --mesh, with the weights split over them.",
)
_MESH = flags.DEFINE_string(
    "mesh",
    None,
    "For spmd: model:4 splits the weights over 4 devices, batch:2,model:4 over 4 of 8.",
)
_LOGICAL_CPUS = flags.DEFINE_integer(
    "logical_cpus",
    1,
    "Devices to split the CPU into, to try others than `default`.",
    lower_bound=1,
)


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_WORKDIR.value)
    distribution.split_cpu(_LOGICAL_CPUS.value)
    tf.config.experimental.enable_op_determinism()  # a run resumes bit for bit
    try:
        _train()
    except KeyboardInterrupt:
        print("The same command goes on from the last checkpoint.", file=sys.stderr)
        raise


def _train():
    if _STRATEGY.value != "spmd":
        if _MESH.value is not None:
            raise ValueError(f"--mesh {_MESH.value} is of --strategy spmd alone")
        with distribution.make_strategy(_STRATEGY.value).scope():
            loop.train(_CONFIG.value, _WORKDIR.value)
        return
    if _MESH.value is None:
        raise ValueError("--strategy spmd needs its devices, such as --mesh model:2")
    devices = mesh.make_mesh(_MESH.value)
    with tf.device("CPU:0"):  # where whole weights are, beside those on the mesh
        loop.train(_CONFIG.value, _WORKDIR.value, devices)


if __name__ == "__main__":
    flags.mark_flags_as_required(["config", "workdir"])
    command_line.run(main)
