"""Exports a run as a SavedModel for TF Serving and `tools.classify`.

Examples:
  python -m tools.export_saved_model --workdir runs/demo --output runs/demo/saved_model
  python -m tools.export_saved_model --workdir runs/demo --output served/1 \\
      --labels "home,heart,lock" --templates "a {} icon|{} symbol"
"""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

import basic_tf
from basic_tf.evaluation import prompts
from basic_tf.export import saved_model
from experiments import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder to write; a SavedModel in it is replaced."
)
_LABELS = flags.DEFINE_list(
    "labels", None, "Default labels; without them the class names of the training data."
)
_TEMPLATES = flags.DEFINE_string(
    "templates", None, "Texts with one slot {}, separated by |."
)


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_OUTPUT.value)
    output = pathlib.Path(_OUTPUT.value)
    holds_model = (output / "saved_model.pb").is_file()
    if output.exists() and any(output.iterdir()) and not holds_model:
        raise ValueError(f"{output} holds other files; name a new folder")
    labels = [label.strip() for label in _LABELS.value or [] if label.strip()]
    if _LABELS.value is not None and not labels:
        raise ValueError("--labels names no label; leave it out for those of the run")
    run = basic_tf.load(_WORKDIR.value)
    labels = labels or run.label_names
    if not labels:
        raise ValueError("the run was trained without class names: give --labels")
    templates = prompts.load_templates("names")
    if _TEMPLATES.value is not None:
        templates = _TEMPLATES.value.split("|")
    saved_model.ZeroShotServer(run, labels, templates).save(_OUTPUT.value)
    print(f"{_OUTPUT.value}: a SavedModel with {len(labels)} labels")


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir", "output"])
    command_line.run(main)
