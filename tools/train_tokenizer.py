"""Trains a SentencePiece tokenizer on captions that are drawn from a source.

Examples:
  python -m tools.train_tokenizer --source csv:pairs.csv --output tokenizer.model
  python -m tools.train_tokenizer --source tfds:glyphs:train --output runs/bpe.model \\
      --kind bpe --byte_fallback --vocabulary_size 1000 --captions 10000 --json
"""

import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from absl import flags

from basic_tf import files
from basic_tf.data import mixture, tokenizer
from experiments import command_line

_SOURCE = flags.DEFINE_string("source", None, "Where the captions are.")
_OUTPUT = flags.DEFINE_string("output", None, "The file to write.")
_DATA_DIR = flags.DEFINE_string("data_dir", None, "Where TFDS keeps its data sets.")
_SIZE = flags.DEFINE_integer("vocabulary_size", 32_000, "Pieces.", lower_bound=4)
_CAPTIONS = flags.DEFINE_integer(
    "captions", 1_000_000, "Captions to draw; all where there are no more.", 1
)
_SEED = flags.DEFINE_integer("seed", 0, "Of the draw.", lower_bound=0)
_KIND = flags.DEFINE_enum("kind", "unigram", tokenizer.KINDS, "Kind of the model.")
_NORMALIZATION = flags.DEFINE_enum(
    "normalization", tokenizer.NORMALIZATIONS[0], tokenizer.NORMALIZATIONS,
    "SentencePiece's rule for the text: NFKC with case folding, or less.",
)  # fmt: skip
_BYTES = flags.DEFINE_boolean(
    "byte_fallback", False, "Spell unseen characters by bytes, which take 256 pieces."
)
_SMALLER = flags.DEFINE_boolean(
    "allow_smaller", False, "Take a smaller vocabulary where the text cannot fill it."
)
_JSON = flags.DEFINE_boolean("json", False, "Print the result as JSON.")


def main(arguments):
    command_line.refuse(arguments)
    output = pathlib.Path(_OUTPUT.value)
    if output.exists():
        raise ValueError(f"{output} is there already; name another file")
    captions = draw(mixture.load(_SOURCE.value, _DATA_DIR.value).captions)
    try:
        model = tokenizer.train(
            captions, _SIZE.value, _KIND.value, _NORMALIZATION.value, _BYTES.value,
            _SMALLER.value,
        )  # fmt: skip
    except ValueError as error:
        if "too high" in str(error):
            raise ValueError(f"{error} Or give --allow_smaller.") from None
        raise
    output.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(output, model)
    size = tokenizer.Tokenizer(model, 2).vocabulary_size
    result = {"output": str(output), "captions": len(captions), "vocabulary_size": size}
    print(
        json.dumps(result)
        if _JSON.value
        else f"{output}: {size} pieces from {len(captions)} captions"
    )


def draw(captions):
    """So many captions as the flag says, in their order, by the seed alone."""
    rng = np.random.default_rng(_SEED.value)
    count = min(_CAPTIONS.value, len(captions))
    chosen = np.sort(rng.choice(len(captions), count, replace=False))
    return [captions[index] for index in chosen]


if __name__ == "__main__":
    flags.mark_flags_as_required(["source", "output"])
    command_line.run(main)
