"""Filters a source and writes it as TFRecord shards, by a pipeline of Apache Beam.

An image that cannot be decoded is listed in bad_examples.jsonl. Of the others, what is
dropped, in this order: captions of more than --max_length tokens of a --tokenizer, and
an example with no other; images of a side shorter than --min_side; those that look like
one of --evaluation (BASIC section 7.1); what has come before; what none of --queries
chooses (CLIP section 2.2).

The folder gets shards that the source `tfrecord:` reads and manifest.json, the last of
all. The same arguments make the same bytes: after a kill, give them again.

What follows `--` is Beam's, its runner and options; without a runner, this machine's.
Others need basic_tf on their workers and paths that all can reach.

Examples:
  python -m tools.build_dataset --source csv:pairs.csv --output data/pairs \\
      --min_side 64 --evaluation tfds:cifar10:test \\
      -- --direct_num_workers=0 --direct_running_mode=multi_processing
  python -m tools.build_dataset --source "webdataset:gs://b/{00000..00999}.tar" \\
      --output gs://b/clean --num_shards 1000 --tokenizer tokenizer.model \\
      --tokenized --json -- --runner=DataflowRunner --project=p --temp_location=gs://b/t
"""

import json
import logging
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from absl import flags

from experiments import command_line
from tools import dataset_building, dataset_plan

_DEFAULT = dataset_plan.Request
_SOURCE = flags.DEFINE_string("source", None, "Where the examples are.")
_OUTPUT = flags.DEFINE_string("output", None, "Folder of the data set.")
_DATA_DIR = flags.DEFINE_string("data_dir", None, "Where TFDS keeps its data sets.")
_SHARDS = flags.DEFINE_integer(
    "num_shards", _DEFAULT.num_shards, "Files to write.", 1, 99_999
)
_SEED = flags.DEFINE_integer("seed", _DEFAULT.seed, "Of the shards and of balancing.")
_TOKENIZER = flags.DEFINE_string("tokenizer", None, "File to measure captions by.")
_KIND = flags.DEFINE_enum(
    "tokenizer_kind", _DEFAULT.tokenizer_kind, dataset_plan.TOKENIZERS, "Its kind."
)
_MAX_LENGTH = flags.DEFINE_integer(
    "max_length", _DEFAULT.max_length, "Tokens of a caption, with those at its ends.", 2
)
_TOKENIZED = flags.DEFINE_boolean(
    "tokenized", _DEFAULT.tokenized, "Write the captions' token_ids, too."
)
_MIN_SIDE = flags.DEFINE_integer("min_side", _DEFAULT.min_side, "In pixels.", 1)
_DISTINCT = flags.DEFINE_enum(
    "distinct", _DEFAULT.distinct, dataset_plan.DISTINCT,
    "What may come once: an image with the same captions, an image, or neither.",
)  # fmt: skip
_EVALUATION = flags.DEFINE_list("evaluation", [], "Sources of evaluation images.")
_THRESHOLD = flags.DEFINE_float(
    "threshold", _DEFAULT.threshold, "Structural similarity that is too much."
)
_EXHAUSTIVE = flags.DEFINE_boolean(
    "exhaustive", _DEFAULT.exhaustive, "Compare all images: misses none, takes longer."
)
_QUERIES = flags.DEFINE_string("queries", None, "File of queries, a line each.")
_MAX_PER_QUERY = flags.DEFINE_integer(
    "max_per_query", _DEFAULT.max_per_query, "Pairs that a query chooses.", 1
)
_MAX_BAD = flags.DEFINE_float(
    "max_bad_fraction", _DEFAULT.max_bad_fraction, "More broken: an error.", 0, 1
)
_JSON = flags.DEFINE_boolean("json", False, "Print the manifest.")


def main(arguments):
    if arguments and not arguments[0].startswith("--"):
        command_line.refuse(arguments)
    command_line.check_folder(_OUTPUT.value)
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    queries = _read(_QUERIES.value).decode().splitlines() if _QUERIES.value else None
    request = dataset_plan.Request(
        source=_SOURCE.value,
        output=_OUTPUT.value,
        data_dir=_DATA_DIR.value,
        num_shards=_SHARDS.value,
        seed=_SEED.value,
        tokenizer=_read(_TOKENIZER.value) if _TOKENIZER.value else b"",
        tokenizer_kind=_KIND.value,
        max_length=_MAX_LENGTH.value,
        tokenized=_TOKENIZED.value,
        min_side=_MIN_SIDE.value,
        distinct=_DISTINCT.value,
        evaluation=_EVALUATION.value,
        threshold=_THRESHOLD.value,
        exhaustive=_EXHAUSTIVE.value,
        queries=queries,
        max_per_query=_MAX_PER_QUERY.value,
        max_bad_fraction=_MAX_BAD.value,
    )
    manifest, was_there = dataset_building.build(request, arguments)
    if was_there:
        print(f"{_OUTPUT.value} is finished: nothing to do", file=sys.stderr)
    print(json.dumps(manifest, indent=2) if _JSON.value else _summary(manifest))


def _read(path):
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()


def _summary(manifest):
    dropped, broken = (
        dataset_building.describe_counts(manifest[section])
        for section in ("dropped", "broken")
    )
    return (
        f"{_OUTPUT.value}: {manifest['examples']} of {manifest['read']} examples in "
        f"{len(manifest['shards'])} shards, {manifest['bytes'] / 1e6:.1f} MB; "
        f"dropped: {dropped}; broken: {broken}"
    )


if __name__ == "__main__":
    flags.mark_flags_as_required(["source", "output"])
    command_line.run(main)
