"""`tfds:NAME[/CONFIG]:SPLIT`: a data set of TensorFlow Datasets."""

import collections
import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from basic_tf.data import (
    example_table,
    glyphs,  # noqa: F401 (registers the builder)
    image_places,
    tfrecord_source,
)

MAX_BYTES_IN_MEMORY = 2**30  # of a split's files; beyond, images are read on demand


def load(name, split, data_dir=None):
    """Reads a split, which is prepared first where it has to be.

    Args:
        name: `NAME[/CONFIG]`.
        split: a split's name, or a slice of one, such as `train[:90%]`.
        data_dir: where TFDS keeps its data sets; its own default when None.

    Returns:
        `Examples`, in the order of the files.

    Raises:
        ValueError: for an unknown data set or split, or a data set without images and
            captions or labels.
    """
    builder, info = open_split(name, split, data_dir)
    features = builder.info.features
    wanted = {"image", "caption", "label", "labels"} & set(features)
    if "image" not in wanted or not {"caption", "label"} & wanted:
        raise ValueError(
            f"{name} has no image with a caption or a label; "
            f"its features are {', '.join(features)}"
        )
    if "label" not in features:
        wanted.discard("labels")  # whose names are those of the label
    paths = {part.filename for part in info.file_instructions}
    size = sum(tf.io.gfile.stat(path).length for path in paths)
    in_memory = size <= MAX_BYTES_IN_MEMORY
    columns = _read_columns(builder, split, wanted if in_memory else wanted - {"image"})
    class_names = features["label"].names if "label" in features else []
    labels = [int(index) for index in columns["label"]]
    label_sets = columns["labels"] or [[index] for index in labels]
    return example_table.Examples(
        images=image_places.InMemory(columns["image"])
        if in_memory
        else image_records(builder, info, "image"),
        captions=[caption.decode("utf-8", "replace") for caption in columns["caption"]]
        or [
            example_table.label_text(class_names[index] for index in labels)
            for labels in label_sets
        ],
        labels=labels,
        label_sets=label_sets,
        label_names=class_names,
        keys=[f"{name}:{split} {row}" for row in range(info.num_examples)],
    )


def open_split(name, split, data_dir):
    """`(builder, its information on the split)`; arguments and errors as of `load`."""
    try:
        builder = tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"no TFDS data set {name!r}: {reason}") from error
    builder.download_and_prepare()
    try:
        return builder, builder.info.splits[split]
    except (KeyError, ValueError):
        known = ", ".join(builder.info.splits)
        raise ValueError(f"{name} has no split {split!r}; it has {known}") from None


def _read_columns(builder, split, wanted):
    """`{feature: list of values}` of a split; images as they are encoded."""
    decoders = {"image": tfds.decode.SkipDecoding()} if "image" in wanted else None
    dataset = builder.as_dataset(
        split=split,
        decoders=tfds.decode.PartialDecoding(dict.fromkeys(wanted, True), decoders),
        shuffle_files=False,
        # File after file, the order of `image_records`.
        read_config=tfds.ReadConfig(interleave_cycle_length=1),
    )
    columns = collections.defaultdict(list)
    for chunk in dataset.ragged_batch(4096):  # row by row takes twenty times as long
        for name, values in chunk.items():
            is_ragged = isinstance(values, tf.RaggedTensor)
            columns[name] += values.to_list() if is_ragged else list(values.numpy())
    return columns


def image_records(builder, info, feature, choose=tf.identity):
    """The places of a split's images, in the order of `_read_columns`.

    Args:
        builder: of the data set.
        info: of the split, from `open_split`.
        feature: name of the feature that holds the image.
        choose: function from the feature as it is stored to the bytes of one image.

    Returns:
        `image_places.Records`.

    Raises:
        ValueError: if the data set is not kept as TFRecord files.
    """
    if builder.info.file_format != tfds.core.FileFormat.TFRECORD:
        raise ValueError(
            f"{builder.info.full_name} is kept as {builder.info.file_format.value}, "
            "whose records cannot be read on demand; prepare it as tfrecord"
        )
    paths, rows = [], []
    for number, part in enumerate(info.file_instructions):
        offsets, _ = tfrecord_source.record_offsets(part.filename)
        end = None if part.take < 0 else part.skip + part.take
        rows += [(number, offset) for offset in offsets[part.skip : end]]
        paths.append(part.filename)
    extract = _ImageExtractor(builder, feature, choose)
    return image_places.Records(paths, np.array(rows, np.int64), extract)


@dataclasses.dataclass(frozen=True)
class _ImageExtractor:
    """From a record to the bytes of its image; can be pickled, as a builder can."""

    builder: tfds.core.DatasetBuilder
    feature: str
    choose: Callable

    def __call__(self, record):
        partial = tfds.decode.PartialDecoding({self.feature: True})
        features = partial.extract_features(self.builder.info.features)
        decoders = {self.feature: tfds.decode.SkipDecoding()}
        stored = features.deserialize_example(record, decoders=decoders)
        return self.choose(stored[self.feature])
