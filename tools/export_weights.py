"""Writes the weights of a CLIP run, imported or fine-tuned, as a file for OpenCLIP.

Beside it comes the `open_clip_config.json` that tells OpenCLIP, and
`tools.import_weights`, what model it is of.

Example:
  python -m tools.export_weights --workdir runs/clip \\
      --output exported/open_clip_model.safetensors
"""

import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import safetensors.numpy
from absl import flags

import basic_tf
from basic_tf import files
from basic_tf.export import open_clip_configuration, weights
from experiments import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "The .safetensors file to write, float32; open_clip_model.safetensors is the name "
    "that OpenCLIP looks for in a folder.",
)


def main(arguments):
    command_line.refuse(arguments)
    output = pathlib.Path(_OUTPUT.value)
    if output.suffix != ".safetensors":
        raise ValueError(f"{output} must end in .safetensors: OpenCLIP goes by that")
    description = output.with_name("open_clip_config.json")
    for path in (output, description):
        if path.exists():
            raise ValueError(f"{path} is there already; name a file in another folder")
    run = basic_tf.load(_WORKDIR.value)
    if run.config.tokenizer.get("kind") != "clip":
        raise ValueError(f"{_WORKDIR.value} is no CLIP: its tokenizer is its own")
    described = open_clip_configuration.to_open_clip(run.model)
    custom_text = described["model_cfg"].get("custom_text", False)
    state_dict = weights.to_state_dict(run.model, custom_text)
    content = safetensors.numpy.save(state_dict)
    output.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(output, content)
    files.write_whole(description, json.dumps(described, indent=2))
    print(f"{output}: {len(content):,} bytes, described in {description}")


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir", "output"])
    command_line.run(main)
