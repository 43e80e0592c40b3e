"""Trains a model, or goes on with a run that was interrupted.

Examples:
  python -m experiments.train --config experiments/configs/glyphs.py --workdir runs/a
  python -m experiments.train --config experiments/configs/glyphs.py:scratch \\
      --config.phases.scratch.batch_size=512 --workdir runs/b
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from absl import flags
from ml_collections import config_flags

from basic_tf.training import loop
from experiments import command_line

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "The experiment, FILE[:ARGUMENT].", lock_config=True
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")


def main(arguments):
    command_line.refuse(arguments)
    tf.config.experimental.enable_op_determinism()  # a run resumes bit for bit
    try:
        loop.train(_CONFIG.value, _WORKDIR.value)
    except KeyboardInterrupt:
        print("The same command goes on from the last checkpoint.", file=sys.stderr)
        raise


if __name__ == "__main__":
    flags.mark_flags_as_required(["config", "workdir"])
    command_line.run(main)
