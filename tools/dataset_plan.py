"""What a data set is to be, and what those who build it tell each other by files."""

import dataclasses
import hashlib
import itertools
import json
import os
import pickle

import tensorflow as tf

from basic_tf.data import (
    clip_tokenizer,
    contamination,
    dataset_folder,
    example_rows,
    example_table,
    filters,
    tokenizer,
)

SLICE = 1024  # examples that a worker decodes in one go
TOKENIZERS = {
    "sentencepiece": tokenizer.Tokenizer,
    "clip": clip_tokenizer.ClipTokenizer,
}
DISTINCT = ("pairs", "images", "none")
_PLAN, _EVALUATION, _FINDINGS = "plan", "evaluation", "findings.json"
_NOT_OF_THE_BYTES = ("output", "data_dir", "max_bad_fraction")


@dataclasses.dataclass(frozen=True)
class Request:
    """What a data set is to be.

    Attributes:
        source: as `sources.load` takes it.
        output: folder of the data set, of whatever `tf.io.gfile` writes.
        data_dir: where TFDS keeps its data sets; its own default when None.
        num_shards: how many files to write.
        seed: of the shards and of balancing.
        tokenizer: content of the file of the captions' tokenizer; empty for none.
        tokenizer_kind: one of `TOKENIZERS`.
        max_length: tokens of a caption; longer ones are dropped.
        tokenized: write `token_ids`, too.
        min_side: length of an image's shorter side, in pixels.
        distinct: what may come once, one of `DISTINCT`.
        evaluation: sources of images that no image may look like.
        threshold: as `contamination.EvaluationImages` takes it.
        exhaustive: the same.
        queries: strings to balance by; None not to.
        max_per_query: pairs that a query chooses at most.
        max_bad_fraction: of what was read; if more is broken that is an error.

    Raises:
        ValueError: for `tokenized` without a tokenizer, or queries without a word.
    """

    source: str
    output: str
    data_dir: str | None = None
    num_shards: int = 16
    seed: int = 0
    tokenizer: bytes = b""
    tokenizer_kind: str = "sentencepiece"
    max_length: int = 64
    tokenized: bool = False
    min_side: int = 1
    distinct: str = DISTINCT[0]
    evaluation: list = dataclasses.field(default_factory=list)
    threshold: float = contamination.THRESHOLD
    exhaustive: bool = False
    queries: list | None = None
    max_per_query: int = filters.MAX_PAIRS
    max_bad_fraction: float = example_table.MAX_BAD_FRACTION

    def __post_init__(self):
        if self.tokenized and not self.tokenizer:
            raise ValueError("tokenized writes a tokenizer's ids: name a tokenizer")
        if self.queries is not None:
            filters.Queries(self.queries)

    def describe(self):
        """What the bytes of the data set are a function of, as JSON can hold it."""
        described = dataclasses.asdict(self)
        for name in _NOT_OF_THE_BYTES:
            del described[name]
        queries = "\n".join(self.queries or [])
        described["tokenizer"] = _sha256(self.tokenizer)
        described["queries"] = _sha256(queries.encode())
        return described


def _sha256(content):
    return hashlib.sha256(content).hexdigest() if content else None


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a data set is built; workers read it, with the vocabulary and all queries.

    Attributes:
        request: `Request`.
        partial: a `dataset_folder.partial_folder` of its output.
        images: one of the `image_places`, without any image.
        num_examples: how many were listed.
        max_bad: how many of them may turn out to be broken.
    """

    request: Request
    partial: str
    images: object
    num_examples: int
    max_bad: int

    @property
    def num_slices(self):
        return -(-self.num_examples // SLICE)

    def make_tokenizer(self):
        """The tokenizer, or None."""
        request = self.request
        if not request.tokenizer:
            return None
        make = TOKENIZERS[request.tokenizer_kind]
        return make(request.tokenizer, request.max_length)

    def read_slice(self, number):
        """List of `example_rows.Row`, as `write_slices` wrote it."""
        return _read_pickle(_slice_path(self.partial, number))

    def read_evaluation(self):
        """What `write_evaluation` wrote."""
        return _read_pickle(os.path.join(self.partial, _EVALUATION))


def write_plan(plan):
    """Writes a plan into its partial folder."""
    _write_pickle(os.path.join(plan.partial, _PLAN), plan)


def read_plan(partial):
    """The `Plan` of a partial folder."""
    return _read_pickle(os.path.join(partial, _PLAN))


def write_slices(partial, examples):
    """Writes the rows of some `Examples`."""
    rows = example_rows.iterate(examples)
    for number in itertools.count():
        if not (part := list(itertools.islice(rows, SLICE))):
            return
        _write_pickle(_slice_path(partial, number), part)


def write_evaluation(partial, held, keys):
    """Writes the result of `contamination.load_evaluation`, features and all.

    A worker that computed them anew could round differently, and miss another pair.
    """
    _write_pickle(os.path.join(partial, _EVALUATION), (held, keys))


def write_findings(found, partial):
    """Writes what the workers found: a list of `(section, name, value)`."""
    dataset_folder.write_whole(partial, _FINDINGS, json.dumps(found), partial)


def read_findings(partial):
    """`{section: {name: value}}`, sorted by name."""
    with tf.io.gfile.GFile(os.path.join(partial, _FINDINGS), "rb") as file:
        found = json.loads(file.read())
    sections = {}
    for section, name, value in sorted(found, key=lambda entry: entry[:2]):
        sections.setdefault(section, {})[name] = value
    return sections


def _slice_path(partial, number):
    return os.path.join(partial, f"slice-{number}")


def _write_pickle(path, content):
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(pickle.dumps(content))


def _read_pickle(path):
    with tf.io.gfile.GFile(path, "rb") as file:
        return pickle.loads(file.read())
