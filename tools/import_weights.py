"""Makes a run of the weights of a CLIP model of OpenAI or OpenCLIP.

The run can be evaluated, exported and fine-tuned like one that was trained here.

Examples:
  python -m tools.import_weights --weights open_clip_model.safetensors \\
      --model open_clip_config.json --vocabulary bpe_simple_vocab_16e6.txt.gz \\
      --workdir runs/vit_b_32
  python -m tools.import_weights --weights state_dict.pt --model vit_b_32 \\
      --vocabulary bpe_simple_vocab_16e6.txt.gz --workdir runs/openai
"""

import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

from basic_tf import files
from basic_tf.data import clip_tokenizer
from basic_tf.export import open_clip_configuration, weights
from basic_tf.models import clip_configurations, zoo
from basic_tf.training import checkpoints, loaded_run
from experiments import command_line

_WEIGHTS = flags.DEFINE_string(
    "weights",
    None,
    "A .safetensors file, or a .pt or .bin file of a state dict. What OpenAI publishes "
    "is a TorchScript archive: save torch.jit.load(FILE).state_dict() of it.",
)
_MODEL = flags.DEFINE_string(
    "model",
    None,
    "A JSON file of OpenCLIP's (open_clip_config.json, or of its model_configs), or a "
    f"name for OpenAI's: {', '.join(clip_configurations.CLIP_CONFIGURATIONS)}.",
)
_VOCABULARY = flags.DEFINE_string(
    "vocabulary", None, "CLIP's bpe_simple_vocab_16e6.txt.gz."
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run, new or empty.")


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_WORKDIR.value)
    workdir = pathlib.Path(_WORKDIR.value)
    if workdir.exists() and any(workdir.iterdir()):
        raise ValueError(f"{workdir} is not empty; name a new folder")
    configuration, vocabulary_size = _configuration(_MODEL.value)
    vocabulary = pathlib.Path(_VOCABULARY.value).read_bytes()
    max_length = configuration["text_encoder"]["max_length"]
    tokenizer = clip_tokenizer.ClipTokenizer(vocabulary, max_length)
    if tokenizer.vocabulary_size != vocabulary_size:
        raise ValueError(
            f"{_VOCABULARY.value} makes {tokenizer.vocabulary_size} ids and the model "
            f"has {vocabulary_size}"
        )
    model = zoo.build(configuration, vocabulary_size)
    weights.load_weights(model, _WEIGHTS.value)
    _write(workdir, configuration, vocabulary, model)
    print(f"{workdir}: {zoo.count_parameters(model):,} parameters")


def _configuration(name):
    """`(configuration, vocabulary size)` of a name or a JSON file."""
    if name in clip_configurations.CLIP_CONFIGURATIONS:
        named = clip_configurations.CLIP_CONFIGURATIONS[name]
        return named, clip_configurations.VOCABULARY_SIZE
    path = pathlib.Path(name)
    if not path.is_file():
        known = ", ".join(clip_configurations.CLIP_CONFIGURATIONS)
        raise ValueError(f"--model {name} is neither a file nor one of {known}")
    return open_clip_configuration.from_open_clip(files.read_json(path))


def _write(workdir, configuration, vocabulary, model):
    """The files of a run that was trained elsewhere: no phase, no step."""
    source = pathlib.Path(_WEIGHTS.value).name
    config = {
        "model": configuration,
        "tokenizer": {"kind": "clip"},
        "data": {"train": source, "data_dir": ""},
        "evaluation": {"tasks": ()},
        "log_every": 1,
        "checkpoint_every": 1,
        "phase_order": (),  # what a training would be refused for
        "phases": {},
    }
    training = {
        "seconds": 0.0,
        "examples_per_second": 0.0,
        "input_examples_per_second": 0.0,
        "cpu_utilization": 0.0,
        "peak_memory_mb": 0.0,
        "phases": {},
        "parameters": {
            "image_encoder": zoo.count_parameters(model.image_encoder),
            "text_encoder": zoo.count_parameters(model.text_encoder),
        },
    }
    (workdir / "checkpoints").mkdir(parents=True)
    checkpoints.save(
        workdir / "checkpoints", step=0, variables=loaded_run.model_variables(model)
    )
    files.write_whole(workdir / "tokenizer.model", vocabulary)
    files.write_whole(workdir / "labels.json", "[]")
    files.write_whole(workdir / "train.json", json.dumps(training, indent=2))
    # The last: a folder without it is no run.
    files.write_whole(workdir / "config.json", json.dumps(config, indent=2))


if __name__ == "__main__":
    flags.mark_flags_as_required(["weights", "model", "vocabulary", "workdir"])
    command_line.run(main)
