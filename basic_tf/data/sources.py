"""Where examples come from: `tfds:NAME[/CONFIG]:SPLIT` and `csv:FILE`."""

import collections
import csv
import dataclasses
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from absl import logging

from basic_tf.data import (
    decoding,
    glyphs,  # noqa: F401 (registers the builder)
)

IMAGE_COLUMNS = ("image", "filepath", "path", "image_path", "file", "filename")
MAX_DROPPED_SHARE = 0.5  # of the examples; more is a mistake, not noise
MAX_CELL_SIZE = 2**30  # Python's own limit of 2^17 would refuse the whole table
CAPTION_COLUMNS = ("caption", "title", "text", "description")


@dataclasses.dataclass(frozen=True)
class Examples:
    """Pairs of image and caption, with random access.

    Attributes:
        images: N encoded images (bytes), or N paths where `are_paths`.
        captions: N strings.
        labels: N class indices into `label_names`, or empty.
        label_sets: N lists of class indices (an image may carry several), or empty.
        label_names: names of the classes, in the order of their indices.
        are_paths: whether `images` are paths of files.
        pixels: `[N, S, S, 3]` uint8, the decoded images (`batches.keep_pixels`), or
            None.
    """

    images: list
    captions: list
    labels: list = dataclasses.field(default_factory=list)
    label_sets: list = dataclasses.field(default_factory=list)
    label_names: list = dataclasses.field(default_factory=list)
    are_paths: bool = False
    pixels: np.ndarray | None = None

    def __len__(self):
        return len(self.images)

    def select(self, keep):
        """The examples whose entry in `keep`, N booleans, is true."""

        def pick(values):
            return [v for v, kept in zip(values, keep, strict=True) if kept]

        per_example = ("images", "captions", "labels", "label_sets")
        pixels = self.pixels
        return dataclasses.replace(
            self,
            pixels=None if pixels is None else pixels[np.asarray(keep, bool)],
            **{
                field: pick(getattr(self, field))
                for field in per_example
                if getattr(self, field)
            },
        )


def load(source, data_dir=None):
    """Reads a source whole (images of a `csv` stay on disk until they are needed).

    Args:
        source: `"tfds:NAME[/CONFIG]:SPLIT"` (SPLIT may be a slice, `train[:90%]`) or
            `"csv:FILE"`.
        data_dir: where TFDS keeps its data sets; its own default when None.

    Returns:
        `Examples`.

    Raises:
        ValueError: for another syntax, an unknown data set or split, a data set
            without images and captions or labels, a `csv` without the columns or with
            few usable rows; the message says what would do.
        FileNotFoundError: if the `csv` file does not exist.
    """
    kind, _, rest = source.partition(":")
    if kind == "csv" and rest:
        return _load_csv(pathlib.Path(rest))
    name, _, split = rest.partition(":")
    if kind == "tfds" and name and split:
        return _load_tfds(name, split, data_dir)
    raise ValueError(
        f"source {source!r} is neither tfds:NAME[/CONFIG]:SPLIT nor csv:FILE"
    )


def _load_tfds(name, split, data_dir):
    try:
        builder = tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"no TFDS data set {name!r}: {reason}") from error
    builder.download_and_prepare()
    try:
        builder.info.splits[split]  # a name, or a slice such as train[:90%]
    except (KeyError, ValueError):
        known = ", ".join(builder.info.splits)
        raise ValueError(f"{name} has no split {split!r}; it has {known}") from None
    features = builder.info.features
    if "image" not in features or not {"caption", "label"} & set(features):
        raise ValueError(
            f"{name} has no image with a caption or a label; "
            f"its features are {', '.join(features)}"
        )
    dataset = builder.as_dataset(
        split=split, decoders={"image": tfds.decode.SkipDecoding()}, shuffle_files=False
    )
    columns = collections.defaultdict(list)
    for chunk in dataset.ragged_batch(4096):  # row by row takes twenty times as long
        for name, values in chunk.items():
            is_ragged = isinstance(values, tf.RaggedTensor)
            columns[name] += values.to_list() if is_ragged else list(values.numpy())
    class_names = features["label"].names if "label" in features else []
    labels = [int(index) for index in columns["label"]]
    return Examples(
        images=columns["image"],
        captions=[caption.decode() for caption in columns["caption"]]
        or [class_names[index] for index in labels],
        labels=labels,
        label_sets=columns["labels"] or [[index] for index in labels],
        label_names=class_names,
    )


def _load_csv(path):
    rows, columns = _read_table(path)
    image_column = _find_column(path, columns, IMAGE_COLUMNS, "image path")
    caption_column = _find_column(path, columns, CAPTION_COLUMNS, "caption")
    images, captions, dropped = [], [], collections.Counter()
    for number, row in rows:
        image = path.parent / (row[image_column] or "")  # paths are beside the file
        caption = row[caption_column] or ""
        if None in row:
            reason = "more cells than columns (a comma outside quotes?)"
        else:
            reason = _why_unusable(image) if caption.strip() else "empty caption"
        if reason:
            dropped[reason] += 1
            logging.warning("%s line %d: %s: %s", path, number, image, reason)
            continue
        images.append(str(image))
        captions.append(caption)
    counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
    if dropped:
        logging.warning("%s: dropped of %d rows: %s", path, len(rows), counts)
    if not rows:
        raise ValueError(f"{path} has a header and no rows")
    if len(images) < max(1, (1 - MAX_DROPPED_SHARE) * len(rows)):
        raise ValueError(
            f"{path}: only {len(images)} of {len(rows)} rows can be used: {counts}"
        )
    return Examples(images=images, captions=captions, are_paths=True)


def _read_table(path):
    """`([(line number, row as a dictionary)], column names)`; blank rows left out."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            head = file.readline()
            delimiter = max(",\t;|", key=head.count)
            file.seek(0)
            csv.field_size_limit(MAX_CELL_SIZE)
            reader = csv.DictReader(file, delimiter=delimiter, strict=True)
            rows = [(reader.line_num, row) for row in reader if any(row.values())]
            return rows, reader.fieldnames or []
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not a table in UTF-8: {error}") from None
        except csv.Error as error:
            raise ValueError(f"{path} line {reader.reader.line_num}: {error}") from None


def _find_column(path, columns, candidates, what):
    """The first of `candidates` that is a column, in any case of letters."""
    by_name = {column.strip().lower(): column for column in columns}
    for candidate in candidates:
        if candidate in by_name:
            return by_name[candidate]
    raise ValueError(
        f"{path} has no {what} column: its columns are {', '.join(columns) or 'none'}; "
        f"one of {', '.join(candidates)} is needed"
    )


def _why_unusable(path):
    """A reason, or None for an image that can be decoded."""
    try:
        if not path.is_file():
            return "missing image"
        decoding.decode_image(tf.constant(path.read_bytes()))
    except OSError as error:
        return f"unreadable image ({error.strerror})"
    except tf.errors.InvalidArgumentError:
        return "undecodable image"
    return None
