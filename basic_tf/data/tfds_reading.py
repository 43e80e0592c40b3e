"""Data sets of TFDS of more than an `image` with a `label` or a `caption`."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from basic_tf.data import example_table, tfds_source


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the labels or the captions of an example are.

    Attributes:
        features: names of the features that `read` takes.
        read: function from `{feature: value}` to the indices of the example's classes,
            int64 `[k]`, or to its captions, string `[k]`.
        label_names: function from the features of the data set to the names of the
            classes; None for captions.
        image: name of the feature that holds the image.
        choose: function from that feature as it is stored to the bytes of one image.
    """

    features: tuple
    read: Callable
    label_names: Callable | None = None
    image: str = "image"
    choose: Callable = tf.identity


def load(name, split, reading, data_dir=None):
    """Reads a split; its images are read on demand.

    Args:
        name, split, data_dir: as of `tfds_source.load`.
        reading: `Reading`.

    Returns:
        `Examples`, in the order of the files. Of classes, `labels` holds the first of
        each example, -1 where it has none.

    Raises:
        ValueError: as `tfds_source.load`, and for a data set without the features.
    """
    builder, info = tfds_source.open_split(name, split, data_dir)
    missing = {reading.image, *reading.features} - set(builder.info.features)
    if missing:
        raise ValueError(
            f"{name} has no {', '.join(sorted(missing))}; "
            f"its features are {', '.join(builder.info.features)}"
        )
    rows = _read_rows(builder, split, reading)
    fields = {
        "images": tfds_source.image_records(
            builder, info, reading.image, reading.choose
        ),
        "keys": [f"{name}:{split} {row}" for row in range(info.num_examples)],
    }
    if reading.label_names is None:
        texts = [[text.decode("utf-8", "replace") for text in row] for row in rows]
        return example_table.Examples(
            captions=list(itertools.chain.from_iterable(texts)),
            caption_counts=np.array([len(row) for row in texts]),
            **fields,
        )
    names = reading.label_names(builder.info.features)
    return example_table.Examples(
        captions=[example_table.label_text(names[i] for i in row) for row in rows],
        labels=[row[0] if row else -1 for row in rows],
        label_sets=rows,
        label_names=names,
        **fields,
    )


def _read_rows(builder, split, reading):
    """A list for each example: what `read` gives."""
    dataset = builder.as_dataset(
        split=split,
        decoders=tfds.decode.PartialDecoding(dict.fromkeys(reading.features, True)),
        shuffle_files=False,
        # File after file, the order of `image_records`.
        read_config=tfds.ReadConfig(interleave_cycle_length=1),
    )
    rows = []
    for chunk in dataset.map(reading.read).ragged_batch(4096):
        is_ragged = isinstance(chunk, tf.RaggedTensor)
        rows += chunk.to_list() if is_ragged else chunk.numpy().tolist()
    return rows
