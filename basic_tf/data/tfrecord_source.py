"""`tfrecord:PATTERN`: TFRecord files of `tf.train.Example`.

| feature | holds |
|---|---|
| `image` | the content of an image file, bytes |
| `texts` | its captions, any number of strings in UTF-8 |
| `labels` | names of its classes, any number of strings in UTF-8 |
| `key` | a name for it, a string; need not be there |
| `token_ids` | T x L ids of its T captions, one after another; need not be there |

A record needs an image, and a caption or a label. `token_ids` is for other programs:
what is read here is tokenised as any other source.
"""

import functools

import numpy as np
import tensorflow as tf

from basic_tf.data import example_table, file_patterns, image_places
from basic_tf.data.webdataset_source import as_text

_FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string, ""),
    "texts": tf.io.RaggedFeature(tf.string),
    "labels": tf.io.RaggedFeature(tf.string),
    "key": tf.io.FixedLenFeature([], tf.string, ""),
}
_FRAME_SIZE = 16  # bytes of a record besides its data: the length, two checksums


def to_record(image_bytes, texts=(), labels=(), key="", token_ids=None):
    """A record of a file that `load` reads, bytes for `tf.io.TFRecordWriter.write`.

    `token_ids` is `[T, L]` int; None to write none.
    """
    values = {
        "image": [image_bytes],
        "texts": [text.encode() for text in texts],
        "labels": [label.encode() for label in labels],
        "key": [key.encode()],
    }
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        for name, value in values.items()
    }
    if token_ids is not None:
        ids = tf.train.Int64List(value=np.ravel(token_ids))
        features["token_ids"] = tf.train.Feature(int64_list=ids)
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)


def load(pattern):
    """Reads the captions of records, and where the records are.

    Args:
        pattern: paths of files that are not compressed; see `file_patterns.find`.

    Returns:
        `Examples`, in the order of the files.

    Raises:
        FileNotFoundError: if a file is not there.
        ValueError: if no record can be used.
    """
    return example_table.read_files(
        f"tfrecord:{pattern}",
        file_patterns.find(pattern),
        _read_file,
        functools.partial(image_places.Records, extract=extract_image),
    )


def extract_image(record):
    """The image's bytes of a record, string `[]`."""
    features = {"image": tf.io.FixedLenFeature([], tf.string)}
    return tf.io.parse_single_example(record, features)["image"]


def record_offsets(path):
    """Where the records of a file start.

    Returns:
        `(offsets, end)`: a list, and the byte from which on there is no whole record.
    """
    offsets, position = [], 0
    size = tf.io.gfile.stat(path).length
    with tf.io.gfile.GFile(path, "rb") as file:
        while position + _FRAME_SIZE <= size:
            file.seek(position)
            length = int.from_bytes(file.read(8), "little")
            if position + _FRAME_SIZE + length > size:
                break
            offsets.append(position)
            position += _FRAME_SIZE + length
    return offsets, position


def _read_file(found, number, path):
    offsets, end = record_offsets(path)

    def parse(offset):
        record = image_places.read_record(path, offset)
        fields = tf.io.parse_single_example(record, _FEATURES)
        has_image = tf.strings.length(fields.pop("image")) > 0
        return fields | {"offset": offset, "has_image": has_image}

    rows = tf.data.Dataset.from_tensor_slices(np.array(offsets, np.int64))
    # A record that cannot be read drops out, and is missed below.
    rows = rows.map(parse, num_parallel_calls=tf.data.AUTOTUNE).ignore_errors()
    left = iter(offsets)
    for row in rows.prefetch(tf.data.AUTOTUNE).as_numpy_iterator():
        for offset in left:
            if offset == row["offset"]:
                break
            found.skip(path, f"byte {offset}", "damaged record")
        _add(found, number, path, row)
    for offset in left:
        found.skip(path, f"byte {offset}", "damaged record")
    if end < tf.io.gfile.stat(path).length:
        found.skip(path, f"byte {end}", "rest of a file, cut off or damaged")


def _add(found, number, path, row):
    texts = [as_text(text) for text in row["texts"]]
    labels = [as_text(label) for label in row["labels"]]
    key = as_text(row["key"]) or f"byte {row['offset']}"
    if not row["has_image"]:
        found.skip(path, key, "record without an image")
    elif not texts and not labels:
        found.skip(path, key, "record without a caption")
    else:
        found.add((number, row["offset"]), texts, labels, key)
