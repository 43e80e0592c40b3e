"""Where examples come from, in one syntax for training and evaluation.

| source | reads |
|---|---|
| `tfds:NAME[/CONFIG]:SPLIT` | a data set of TensorFlow Datasets, or a slice of it |
| `tfrecord:PATTERN` | TFRecord files with the features of `tfrecord_source` |
| `webdataset:PATTERN` | tar archives as img2dataset writes them |
| `csv:FILE[?image=COLUMN&caption=COLUMN]` | a table of image paths and captions |
| `folder:DIR` | images in folders named after their classes |

A pattern may have braces, `{00000..00099}`, and wildcards. Only captions and labels are
read, about 200 bytes an example; the images stay where they are (but for a small data
set of TFDS).
"""

from basic_tf.data import (
    csv_source,
    folder_source,
    tfds_source,
    tfrecord_source,
    webdataset_source,
)
from basic_tf.data.example_table import Examples

_KINDS = {
    "tfrecord": tfrecord_source.load,
    "webdataset": webdataset_source.load,
    "csv": csv_source.load,
    "folder": folder_source.load,
}


def load(source, data_dir=None) -> Examples:
    """Reads a source.

    Args:
        source: see above.
        data_dir: where TFDS keeps its data sets; its own default when None.

    Returns:
        `Examples`, always in the same order. `bad` says what was skipped, which does
        not yet include images that cannot be decoded (`checking.check_images`).

    Raises:
        ValueError: for another syntax or what cannot be read as such a source, with
            what would do.
        FileNotFoundError: if a file or folder that is named does not exist.
    """
    kind, _, rest = source.partition(":")
    if kind in _KINDS and rest:
        return _KINDS[kind](rest)
    name, _, split = rest.partition(":")
    if kind == "tfds" and name and split:
        return tfds_source.load(name, split, data_dir)
    known = ", ".join(["tfds:NAME[/CONFIG]:SPLIT", *(f"{name}:..." for name in _KINDS)])
    raise ValueError(f"source {source!r} is none of {known}")
