"""`webdataset:PATTERN`: tar archives of images and captions, as img2dataset's.

The files `000000001.jpg`, `000000001.txt` and `000000001.json` next to one another are
an example: what its files are called up to the first dot of their names is its key.
"""

import itertools
import json
import tarfile

import tensorflow as tf

from basic_tf.data import csv_source, example_table, file_patterns, image_places
from basic_tf.data.folder_source import IMAGE_EXTENSIONS

_BLOCK_SIZE = 512  # of a tar archive


def load(pattern):
    """Reads the captions of archives, and where the images are in them.

    An image (`.jpg`, `.jpeg`, `.png`, `.webp`, `.gif`, `.bmp`, in any case of letters)
    has the caption in its `.txt`, else that in its `.json` (one of `CAPTION_COLUMNS`, a
    string or several), and the labels there (`label` or `labels`). Bytes that are not
    UTF-8 become U+FFFD.

    Args:
        pattern: paths of archives that are not compressed; see `file_patterns.find`.

    Returns:
        `Examples`, in the order of the archives.

    Raises:
        FileNotFoundError: if an archive is not there.
        ValueError: if no example can be used.
    """
    return example_table.read_files(
        f"webdataset:{pattern}",
        file_patterns.find(pattern),
        _read_archive,
        image_places.FileParts,
    )


def _read_archive(found, number, path):
    with tf.io.gfile.GFile(path, "rb") as file:
        size = tf.io.gfile.stat(path).length
        members = _members(file, path, size, found)
        for key, group in itertools.groupby(members, lambda member: member[0]):
            parts = {extension: place for _, extension, place in group}

            def read(extension, parts=parts):
                offset, length = parts[extension]
                file.seek(offset)
                return file.read(length)

            try:
                place, texts, labels = _example(parts, read)
            except ValueError as error:
                found.skip(path, key, str(error))
            else:
                found.add((number, *place), texts, labels, key)


def _members(file, path, size, found):
    """Yields `(key, extension, (offset, length))` of the files in an archive."""
    end = 0
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                archive.members = []  # it would keep them all
                end = member.offset_data + _padded(member.size)
                if member.offset_data + member.size > size:
                    raise tarfile.ReadError("it ends inside a file")
                folder, slash, name = member.name.rpartition("/")
                stem, dot, extension = name.partition(".")
                if member.isreg() and stem and dot:
                    place = (member.offset_data, member.size)
                    yield f"{folder}{slash}{stem}", f".{extension.lower()}", place
        file.seek(end)
        if file.read(_BLOCK_SIZE).strip(
            b"\0"
        ):  # a header that tarfile takes for an end
            raise tarfile.ReadError("it is damaged")
    except tarfile.TarError:
        found.skip(path, "", f"rest of an archive, unreadable from byte {end} on")


def _padded(size):
    return -(-size // _BLOCK_SIZE) * _BLOCK_SIZE


def _example(parts, read):
    """`((offset, length), texts, labels)`; a `ValueError` says why it is unusable."""
    extensions = [name for name in IMAGE_EXTENSIONS if name in parts]
    if not extensions:
        raise ValueError("example without an image")
    place = parts[extensions[0]]
    if not place[1]:
        raise ValueError("empty image")
    texts, labels = _read_json(read(".json")) if ".json" in parts else ([], [])
    if ".txt" in parts:
        texts = [as_text(read(".txt"))]
    if not texts and not labels:
        raise ValueError("example without a caption")
    return place, texts, labels


def _read_json(content):
    """`(texts, labels)` of an example's JSON object."""
    try:
        fields = json.loads(as_text(content))
        fields = {name: _strings(value) for name, value in fields.items()}
    except (ValueError, AttributeError):
        raise ValueError("JSON that cannot be read") from None
    texts = [fields[n] for n in csv_source.CAPTION_COLUMNS if fields.get(n)]
    return texts[0] if texts else [], fields.get("labels") or fields.get("label") or []


def _strings(value):
    """A string as a list of one, a list of strings as it is, all else empty."""
    if isinstance(value, str):
        return [value]
    is_list = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return value if is_list else []


def as_text(content):
    """Bytes to a string; what is not UTF-8 becomes U+FFFD."""
    return content.decode("utf-8", "replace")
