"""`csv:FILE`: a table of image paths and captions, as spreadsheets write it."""

import codecs
import csv
import io
import os
import re
import urllib.parse

import tensorflow as tf
from absl import logging

from basic_tf.data import example_table, image_places

IMAGE_COLUMNS = ("image", "filepath", "path", "image_path", "file", "filename")
CAPTION_COLUMNS = ("caption", "title", "text", "description")
LABEL_COLUMNS = ("label", "class")
_COLUMNS = {
    "image": IMAGE_COLUMNS,
    "caption": CAPTION_COLUMNS,
    "label": LABEL_COLUMNS,
}
MAX_CELL_SIZE = 2**30  # Python's own limit of 2^17 would refuse the whole table
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_STRAY_BYTES = "[\udc80-\udcff]"  # what `surrogateescape` makes of them


def load(location):
    """Reads a table.

    The separator (comma, tab, semicolon or bar) is the one that the header has most of;
    the encoding is UTF-8, UTF-16 with a mark, or else, with a warning, Windows' 1252.
    An empty caption and the caption `NA` are strings as others are.

    Args:
        location: path of the table, then what its columns are called, where that is not
            among the usual names: `pairs.csv?image=photo&caption=alt&label=kind`. With
            `caption` given several times an image has as many captions.

    Returns:
        `Examples`; image paths are relative to the table.

    Raises:
        ValueError: for a column that is not there, a quote without an end, or if no row
            can be used.
        FileNotFoundError: if the table does not exist.
    """
    path, _, query = location.partition("?")
    given = urllib.parse.parse_qs(query, strict_parsing=bool(query))
    if given.keys() - _COLUMNS.keys():
        raise ValueError(f"csv:{location}: after ? stand {', '.join(_COLUMNS)} alone")
    text = _read_text(path)
    header = re.match("[^\r\n]*", text)[0]
    delimiter = max(",\t;|", key=header.count)
    csv.field_size_limit(MAX_CELL_SIZE)
    lines = io.StringIO(text, newline="")
    reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
    found = example_table.Collector()
    try:
        columns = _find_columns(path, reader.fieldnames or [], delimiter, given)
        for row in reader:
            if any(row.values()):  # a spreadsheet may end in rows of separators
                _add(found, path, f"line {reader.line_num}", row, columns)
    except csv.Error as error:
        raise ValueError(f"{path} line {reader.reader.line_num}: {error}") from None
    return found.finish(path, image_places.Files)


def _add(found, path, key, row, columns):
    captions = [row[column] for column in columns["caption"]]
    labels = [row[column] for column in columns["label"] if row[column]]
    (image,) = (row[column] for column in columns["image"])
    reason = None
    if None in row:
        reason = "row of more cells than columns (a comma outside quotes?)"
    elif None in captions:
        reason = "row of fewer cells than columns"
    elif not image:
        reason = "row without an image"
    elif any(re.search(_STRAY_BYTES, cell) for cell in [image, *captions, *labels]):
        reason = "row that is not UTF-8"
    if reason:
        found.skip(path, key, reason)
        return
    if "://" not in image:
        image = os.path.join(os.path.dirname(path), image)
    found.add(image, captions, labels, f"{path} {key}")


def _read_text(path):
    """The table's text; bytes that its encoding cannot have become `_STRAY_BYTES`."""
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"no file {path}")
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, "surrogateescape")
    text = content.decode("utf-8", "surrogateescape")
    stray = len(re.findall(_STRAY_BYTES, text))
    if stray <= len(re.findall("[^\0-\x7f]", text)) - stray:
        return text  # in UTF-8, though a row may be damaged
    logging.warning("%s is not in UTF-8: it is read as Windows' code page 1252", path)
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is neither in UTF-8 nor in Windows' code page 1252 ({error}); "
            "save it as UTF-8"
        ) from None


def _find_columns(path, columns, delimiter, given):
    """`{"image", "caption", "label": names of the columns}`; a label may have none."""
    for name in [name for names in given.values() for name in names]:
        if name not in columns:
            raise ValueError(
                f"{path} has no column {name!r}: {_known(columns, delimiter)}"
            )
    if len(given.get("image", [])) > 1:
        raise ValueError(f"{path}: more than one column of images is given")
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    found = {}
    for kind, usual in _COLUMNS.items():
        there = [by_name[name] for name in usual if name in by_name]
        found[kind] = given.get(kind) or there[:1]
    for kind in ("image", "caption"):
        if not found[kind] and not (kind == "caption" and found["label"]):
            raise ValueError(
                f"{path} has no {kind} column: {_known(columns, delimiter)}; "
                f"one of {', '.join(_COLUMNS[kind])} is needed, or csv:FILE?{kind}=NAME"
            )
    return found


def _known(columns, delimiter):
    names = ", ".join(columns) or "none"
    return f"split at {delimiter!r} its columns are {names}"
