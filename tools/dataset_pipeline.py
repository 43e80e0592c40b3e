"""The Beam pipeline of `build_dataset`: from slices of a listing to shards.

What goes from worker to worker are rows without images: filters over the whole data set
need no more, and the worker that writes a shard reads its images again. So images are
read twice, and no shuffle holds more than a few hundred bytes of an example. All else
that workers read or write are files that `tf.io.gfile` reaches.

A step has rows as its main output and, as `FOUND`, `((section, name), value)`: numbers,
which are added up, and dictionaries, each with a name of its own.
"""

import dataclasses

import apache_beam as beam
import numpy as np
from absl import logging
from apache_beam import pvalue

from basic_tf.data import (
    dataset_folder,
    example_rows,
    filters,
    row_images,
    tfrecord_source,
)
from tools import dataset_plan

CHUNK = 256  # examples of a shard that are read and tokenised in one go
FOUND = "found"
CONTAMINATED = "image like an evaluation image"


def build(pipeline, plan):
    """Adds all steps to a pipeline.

    Args:
        pipeline: `beam.Pipeline`; once it has run, `dataset_plan.read_findings` gives
            the sections `bad`, `contaminated` and `shards`, with dictionaries, and
            `dropped`, `dropped_captions` and `queries`, with numbers.
        plan: `dataset_plan.Plan`, whose files are written.
    """
    decoded = (
        pipeline
        | "Start" >> beam.Create([plan.num_slices])
        | "Number" >> beam.FlatMap(lambda count: [*range(count)])
        | "Spread" >> beam.Reshuffle()
        | "Decode" >> beam.ParDo(Decode(plan.partial)).with_outputs(FOUND, main="rows")
    )
    rows, found = decoded.rows, [decoded.found]
    if plan.request.distinct != "none":
        rows, dropped = drop_duplicates(rows, "pair")
        found.append(dropped)
    if plan.request.distinct == "images":
        rows, dropped = drop_duplicates(rows, "image")
        found.append(dropped)
    if plan.request.queries:
        rows, dropped = balance(rows, plan)
        found += dropped
    is_sound = (
        decoded.found
        | "Broken" >> beam.Filter(lambda entry: entry[0][0] == "bad")
        | "CountBroken" >> beam.combiners.Count.Globally()
        | "Sound" >> beam.Map(lambda count, limit: count <= limit, plan.max_bad)
    )
    found.append(write_shards(pipeline, rows, plan, is_sound))
    _ = (
        found
        | "AllFound" >> beam.Flatten()
        | "Add" >> beam.CombinePerKey(_add)
        | "Name" >> beam.Map(lambda entry: (*entry[0], entry[1]))
        | "Gather" >> beam.combiners.ToList()
        | "Tell" >> beam.Map(dataset_plan.write_findings, plan.partial)
    )


def _add(values):
    """The sum of numbers; a single dictionary as it is."""
    values = list(values)
    return values[0] if len(values) == 1 else sum(values)


def _found(section, name, value=1):
    return pvalue.TaggedOutput(FOUND, ((section, name), value))


class _Planned(beam.DoFn):
    """A stage whose workers read the plan in the folder `partial`."""

    def __init__(self, partial):
        self._partial = partial

    def setup(self):
        self._plan = dataset_plan.read_plan(self._partial)
        self._request = self._plan.request
        self._tokenizer = self._plan.make_tokenizer()


class Decode(_Planned):
    """The number of a slice to those of its rows that no filter drops by themselves."""

    def setup(self):
        super().setup()
        has_evaluation = bool(self._request.evaluation)
        self._evaluation = self._plan.read_evaluation() if has_evaluation else None

    def process(self, number):
        rows = self._plan.read_slice(number)
        sight = row_images.see(rows, self._plan.images, self._evaluation is not None)
        for index, bad in sight.bad.items():
            row = rows[index]
            yield _found("bad", row.key, {"number": row.number, **vars(bad)})
        texts = self._short_texts(rows)
        reasons = self._reasons(texts, sight)
        matches = self._matches(sight, reasons)
        for index in sight.sides:
            row = rows[index]
            if count := len(row.texts) - len(texts[index]):
                yield _found("dropped_captions", self._too_long(), count)
            if index in matches:
                yield _found("contaminated", row.key, matches[index])
                yield _found("dropped", CONTAMINATED)
            elif index in reasons:
                yield _found("dropped", reasons[index])
            else:
                digest = sight.digests[index]
                yield dataclasses.replace(row, texts=texts[index], digest=digest)
        logging.log_every_n_seconds(
            logging.INFO, "decoded the images up to %d of %d", 10,
            rows[-1].number + 1, self._plan.num_examples,
        )  # fmt: skip

    def _too_long(self):
        return f"caption of more than {self._request.max_length} tokens"

    def _short_texts(self, rows):
        """The captions of each row that are kept."""
        texts = [row.texts for row in rows]
        if self._tokenizer is None:
            return texts
        return filters.short_texts(
            texts, self._tokenizer.lengths, self._request.max_length
        )

    def _reasons(self, texts, sight):
        """`{index: why an example is dropped}`, but for contamination."""
        reasons = {}
        for index, side in sight.sides.items():
            if not texts[index]:
                reasons[index] = self._too_long()
            elif side < self._request.min_side:
                reasons[index] = f"image of less than {self._request.min_side} pixels"
        return reasons

    def _matches(self, sight, reasons):
        """`{index: evaluation image and score}` of those without a reason."""
        indices = [index for index in sight.grays if index not in reasons]
        if not indices:
            return {}
        held, keys = self._evaluation
        matches = {}
        for match in held.find(np.stack([sight.grays[index] for index in indices])):
            source, key = keys[match.evaluation_image]
            # Beyond six digits a score hangs on the batch.
            found = {"source": source, "match": key, "score": round(match.score, 6)}
            matches[indices[match.image]] = found
        return matches


def drop_duplicates(rows, kind):
    """`(the first of equal rows each, found)`; `kind` is `"pair"` or `"image"`."""

    def key(row):
        is_pair = kind == "pair"
        digest = filters.pair_digest(row.digest, row.texts) if is_pair else row.digest
        return digest, row

    def split(group):
        first, others = filters.split_first(group[1])
        yield first
        for _ in others:
            yield _found("dropped", f"duplicate {kind}")

    result = (
        rows
        | f"Key {kind}" >> beam.Map(key)
        | f"Group {kind}" >> beam.GroupByKey()
        | f"First {kind}" >> beam.FlatMap(split).with_outputs(FOUND, main="rows")
    )
    return result.rows, result.found


class Enter(beam.DoFn):
    """A row to `(query, (rank, number of the row))`, for each of its queries."""

    def __init__(self, partial):
        self._partial = partial

    def setup(self):
        request = dataset_plan.read_plan(self._partial).request
        self._queries, self._seed = filters.Queries(request.queries), request.seed

    def process(self, row):
        for query in self._queries.of(row.texts):
            yield query, (filters.rank(self._seed, query, row.key), row.number)


def balance(rows, plan):
    """`(the rows that a query chooses, [found])`."""
    limit = plan.request.max_per_query

    def split(group):
        (row,), chosen = group[1]["rows"], list(group[1]["chosen"])
        reason = f"not among {limit} pairs of a query"
        yield row if chosen else _found("dropped", reason)

    entered = rows | "Enter" >> beam.ParDo(Enter(plan.partial))
    chosen = (
        entered
        | "Choose" >> beam.combiners.Top.SmallestPerKey(limit)
        | "Chosen" >> beam.FlatMap(lambda pair: [(number, 1) for _, number in pair[1]])
    )
    numbered = rows | "ByNumber" >> beam.Map(lambda row: (row.number, row))
    result = (
        {"rows": numbered, "chosen": chosen}
        | "Join" >> beam.CoGroupByKey()
        | "Balance" >> beam.FlatMap(split).with_outputs(FOUND, main="rows")
    )
    counts = entered | "OfQuery" >> beam.Map(lambda pair: (("queries", pair[0]), 1))
    return result.rows, [result.found, counts]


def write_shards(pipeline, rows, plan, is_sound):
    """Writes all shards, found as `shards`, or none if `is_sound` is false."""

    seed, num_shards = plan.request.seed, plan.request.num_shards

    def place(row):
        return example_rows.shard_of(seed, row.key, num_shards), row

    # A shard without an example is a file, too.
    empty = pipeline | "Shards" >> beam.Create(
        [(shard, None) for shard in range(num_shards)]
    )
    return (
        (rows | "Place" >> beam.Map(place), empty)
        | "AllPlaced" >> beam.Flatten()
        | "ByShard" >> beam.GroupByKey()
        | "Write" >> beam.ParDo(WriteShard(plan.partial), pvalue.AsSingleton(is_sound))
    )


class WriteShard(_Planned):
    """`(shard, its rows)` to a file; what a manifest says of it as main output."""

    def process(self, group, is_sound):
        if not is_sound:
            return
        shard, rows = group
        rows = sorted((row for row in rows if row), key=lambda row: row.key)
        name = dataset_folder.shard_name(shard, self._request.num_shards)
        written = dataset_folder.write_shard(
            self._request.output, name, self._records(rows), self._plan.partial
        )
        logging.info("wrote %s: %d examples", name, len(rows))
        captions = sum(len(row.texts) for row in rows)
        yield ("shards", name), {**written, "captions": captions}

    def _records(self, rows):
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            images = row_images.read_again(part, self._plan.images)
            ids_of_rows = self._token_ids(part)
            for row, image, ids in zip(part, images, ids_of_rows, strict=True):
                yield tfrecord_source.to_record(
                    image, row.texts, row.labels, row.key, ids
                )

    def _token_ids(self, rows):
        """`[T, L]` for each row, or None."""
        if not self._request.tokenized:
            return [None] * len(rows)
        texts = [text for row in rows for text in row.texts]
        ends = np.cumsum([len(row.texts) for row in rows])[:-1]
        return np.split(self._tokenizer(texts).numpy(), ends)
