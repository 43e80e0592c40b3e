"""Where the bytes of images are: read on demand, inside a `tf.data` map.

In TensorFlow's ops where there is one. Python is called for parts of files, as no op
seeks, and as a function without state: where operations are deterministic, others run
one call at a time.
"""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf


class InMemory(list):
    """N images, their bytes themselves."""

    def place_of(self, index):
        """What `at` makes the image of, a value that can be pickled."""
        return self[index]

    def at(self, places):
        """The images at some places of this kind, in their order."""
        return InMemory(places)

    def select(self, keep):
        """Those whose entry in `keep`, N booleans, is true."""
        return InMemory(itertools.compress(self, keep))

    def file_of(self, index):
        """Path of the file that holds an image; empty where none does."""
        return ""

    def reader(self):
        """A function from the index of an image to its bytes, string `[]`."""
        images = tf.constant(self)
        return lambda index: tf.gather(images, index)


@dataclasses.dataclass(frozen=True)
class Files:
    """N images, a file each.

    Attributes:
        paths: N strings, of whatever `tf.io.gfile` reads.
    """

    paths: list

    def __len__(self):
        return len(self.paths)

    def place_of(self, index):
        """As `InMemory.place_of`."""
        return self.paths[index]

    def at(self, places):
        """As `InMemory.at`."""
        return Files(list(places))

    def select(self, keep):
        """As `InMemory.select`."""
        return Files(list(itertools.compress(self.paths, keep)))

    def file_of(self, index):
        """As `InMemory.file_of`."""
        return self.paths[index]

    def reader(self):
        """As `InMemory.reader`."""
        paths = tf.constant(self.paths)
        return lambda index: tf.io.read_file(tf.gather(paths, index))


@dataclasses.dataclass(frozen=True)
class _InFiles:
    """N images inside F files: `paths` of these, `rows` that begin with their index."""

    paths: list
    rows: np.ndarray

    def __len__(self):
        return len(self.rows)

    def place_of(self, index):
        """As `InMemory.place_of`."""
        file, *rest = self.rows[index].tolist()
        return (self.paths[file], *rest)

    def at(self, places):
        """As `InMemory.at`."""
        paths = sorted({path for path, *_ in places})
        number_of = {path: number for number, path in enumerate(paths)}
        rows = [(number_of[path], *rest) for path, *rest in places]
        rows = np.array(rows, np.int64).reshape(-1, self.rows.shape[1])
        return dataclasses.replace(self, paths=paths, rows=rows)

    def select(self, keep):
        """As `InMemory.select`."""
        return dataclasses.replace(self, rows=self.rows[np.asarray(keep, bool)])

    def file_of(self, index):
        """As `InMemory.file_of`."""
        return self.paths[self.rows[index, 0]]


class FileParts(_InFiles):
    """N images inside F files, such as members of tar archives.

    Attributes:
        paths: F strings.
        rows: `[N, 3]` int64: index of the file, first byte, number of bytes (not 0).
    """

    def reader(self):
        """As `InMemory.reader`."""
        paths, rows = tf.constant(self.paths), tf.constant(self.rows)

        def read(index):
            file, start, length = tf.unstack(tf.gather(rows, index))
            # `tf.data.FixedLengthRecordDataset` would read all that is before it.
            inputs = [tf.gather(paths, file), start, length]
            part = tf.numpy_function(_read_part, inputs, tf.string, stateful=False)
            return tf.ensure_shape(part, [])

        return read


@dataclasses.dataclass(frozen=True)
class Records(_InFiles):
    """N images in the records of F TFRecord files, whose checksums are verified.

    Attributes:
        paths: F strings.
        rows: `[N, 2]` int64: index of the file, first byte of the record.
        extract: function from a record, string `[]`, to the bytes of its image.
    """

    extract: Callable

    def reader(self):
        """As `InMemory.reader`."""
        paths, rows = tf.constant(self.paths), tf.constant(self.rows)

        def read(index):
            file, start = tf.unstack(tf.gather(rows, index))
            return self.extract(read_record(tf.gather(paths, file), start))

        return read


class Several:
    """The images of several places, one after another.

    Args:
        parts: places.
    """

    def __init__(self, parts):
        self.parts = [part for part in parts if len(part)]
        self.starts = np.cumsum([0, *map(len, self.parts)])

    def __len__(self):
        return int(self.starts[-1])

    def select(self, keep):
        """As `InMemory.select`."""
        pieces = np.split(np.asarray(keep, bool), self.starts[1:-1])
        pairs = zip(self.parts, pieces, strict=True)
        return Several([part.select(piece) for part, piece in pairs])

    def file_of(self, index):
        """As `InMemory.file_of`."""
        part = int(np.searchsorted(self.starts, index, side="right")) - 1
        return self.parts[part].file_of(index - self.starts[part])

    def reader(self):
        """As `InMemory.reader`."""
        readers, starts = [part.reader() for part in self.parts], self.starts.tolist()

        def read(index):
            index = tf.cast(index, tf.int64)
            branches = [
                lambda read=read, start=start: read(index - start)
                for read, start in zip(readers, starts[:-1], strict=True)
            ]
            part = tf.reduce_sum(tf.cast(index >= starts[1:], tf.int32))
            return tf.switch_case(part, branches)

        return read


def _read_part(path, start, length):
    path, start, length = np.array(path).item().decode(), int(start), int(length)
    # What `GFile` reads at once is many images long; it is for what is not on disk.
    remote = "://" in path
    try:
        with tf.io.gfile.GFile(path, "rb") if remote else open(path, "rb", 0) as file:
            file.seek(start)
            part = file.read(length)
    except OSError as error:
        raise tf.errors.UnavailableError(None, None, str(error)) from None
    if len(part) < length:
        message = f"{path} ends before byte {start + length}"
        raise tf.errors.DataLossError(None, None, message)
    return part


def read_record(path, start):
    """The record that starts at byte `start` of a TFRecord file, string `[]`.

    Raises:
        tf.errors.DataLossError: if it is not whole or its checksum is wrong.
    """
    # The op under `tf.data.TFRecordDataset`, which alone takes offsets.
    variant = tf.raw_ops.TFRecordDatasetV2(
        filenames=[path],
        compression_type="",
        buffer_size=tf.constant(0, tf.int64),
        byte_offsets=[start],
    )
    records = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))
    return records.take(1).get_single_element()
