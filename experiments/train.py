"""Trains a model, or goes on with a run that was interrupted.

Examples:
  python -m experiments.train --config experiments/configs/glyphs.py --workdir runs/a
  python -m experiments.train --config experiments/configs/glyphs.py:scratch \\
      --config.phases.scratch.batch_size=512 --workdir runs/b
  python -m experiments.train --config experiments/configs/glyphs.py --workdir runs/c \\
      --strategy mirrored
  python -m experiments.train --workdir runs/d \\
      --config experiments/configs/finetune.py:runs/a,pairs.csv
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from absl import flags
from ml_collections import config_flags

from basic_tf.training import distribution, loop
from experiments import command_line

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "The experiment, FILE[:ARGUMENT].", lock_config=True
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_STRATEGY = flags.DEFINE_enum(
    "strategy",
    "default",
    list(distribution.STRATEGIES),
    "Devices to train on: one; all GPUs of this machine; the machines of TF_CONFIG; a "
    "TPU.",
)
_LOGICAL_CPUS = flags.DEFINE_integer(
    "logical_cpus", 1, "Devices to split the CPU into, to try `mirrored` without GPUs."
)


def main(arguments):
    command_line.refuse(arguments)
    distribution.split_cpu(_LOGICAL_CPUS.value)
    tf.config.experimental.enable_op_determinism()  # a run resumes bit for bit
    try:
        with distribution.make_strategy(_STRATEGY.value).scope():
            loop.train(_CONFIG.value, _WORKDIR.value)
    except KeyboardInterrupt:
        print("The same command goes on from the last checkpoint.", file=sys.stderr)
        raise


if __name__ == "__main__":
    flags.mark_flags_as_required(["config", "workdir"])
    command_line.run(main)
