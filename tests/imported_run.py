"""A run of weights of OpenCLIP small enough for tests, made by the program itself."""

import json
import pathlib

import numpy as np
import safetensors.numpy

from tests import child_processes

ORACLES = pathlib.Path(__file__).parent / "oracles"
VOCABULARY = b"a title\nh o\nho m\nhom e</w>\n"
VOCABULARY_SIZE = 517  # bytes, bytes that end a word, three merges and two ends
PREPROCESSING = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}


def run_program(name, *arguments, **values):
    """Runs `python -m name` with arguments and flags; what it ended with."""
    options = [f"--{flag}={value}" for flag, value in values.items()]
    return child_processes.run(["-m", name, *arguments, *options])


def import_run(folder):
    """`(workdir, {name: array} of the file it was imported from)`, in a folder.

    The model is the recorded vision transformer with a token for each of `VOCABULARY`.
    """
    config = json.loads((ORACLES / "small_vit.json").read_text())["config"]
    config["text_cfg"]["vocab_size"] = VOCABULARY_SIZE
    description = {"model_cfg": config, "preprocess_cfg": PREPROCESSING}
    tensors = safetensors.numpy.load_file(ORACLES / "small_vit.safetensors")
    shape = VOCABULARY_SIZE, config["text_cfg"]["width"]
    tokens = np.random.default_rng(0).normal(0, 0.02, shape).astype("float32")
    tensors["token_embedding.weight"] = tokens
    safetensors.numpy.save_file(tensors, folder / "small.safetensors")
    (folder / "small.json").write_text(json.dumps(description))
    (folder / "vocabulary.txt").write_bytes(VOCABULARY)
    process = run_program(
        "tools.import_weights",
        weights=folder / "small.safetensors",
        model=folder / "small.json",
        vocabulary=folder / "vocabulary.txt",
        workdir=folder / "imported",
    )
    assert process.returncode == 0, process.stderr
    return folder / "imported", tensors
