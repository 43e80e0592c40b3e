"""A folder that a data set is built into: whose it is, and what in it is whole.

| file | holds |
|---|---|
| `arguments.json` | what the folder was taken for, written first |
| `shard-00000-of-00016.tfrecord` and so on | the examples, as `tfrecord:` reads them |
| `bad_examples.jsonl` | what was skipped, a line each |
| `manifest.json` | what came of it, written last: the folder is finished |
| `partial-...` | what a run at work has not finished |

Files are written inside a partial folder and renamed, so that each is there whole or
not at all. Runs with the same arguments write the same bytes: any number of them may
work on a folder, at once or one after another.
"""

import contextlib
import hashlib
import json
import os
import uuid

import tensorflow as tf

ARGUMENTS, BAD, MANIFEST = "arguments.json", "bad_examples.jsonl", "manifest.json"
_CHUNK = 2**20  # bytes that are hashed at a time


def read_manifest(folder, arguments):
    """The manifest of a folder that is finished, else None.

    Args:
        folder: path of whatever `tf.io.gfile` reads; need not be there.
        arguments: dictionary of what a data set is a function of.

    Raises:
        ValueError: if the folder was taken for other arguments, naming them.
    """
    held = _read_json(os.path.join(folder, ARGUMENTS))
    if held is None:
        return None
    differing = [
        f"{name} {held.get(name)!r}, not {arguments.get(name)!r}"
        for name in {**held, **arguments}
        if held.get(name) != arguments.get(name)
    ]
    if differing:
        raise ValueError(
            f"{folder} is for a data set of {'; '.join(differing)}: "
            "name another folder, or remove this one"
        )
    return _read_json(os.path.join(folder, MANIFEST))


def take(folder, arguments, partial):
    """Takes a folder for a data set, if it is not taken for it already.

    Args:
        folder: that will get it.
        arguments: as in `read_manifest`, which raises as there.
        partial: a `partial_folder` of the folder.
    """
    if read_manifest(folder, arguments) is None:
        # Where another run took it just now, its arguments are what counts.
        with contextlib.suppress(tf.errors.AlreadyExistsError):
            write_whole(folder, ARGUMENTS, _dump(arguments), partial, overwrite=False)
        read_manifest(folder, arguments)


@contextlib.contextmanager
def partial_folder(folder):
    """A new folder inside another for what is not finished, removed in the end."""
    path = os.path.join(folder, f"partial-{uuid.uuid4().hex}")
    tf.io.gfile.makedirs(path)
    try:
        yield path
    finally:
        _remove(path)


def _remove(path):
    # Another run may have removed it, or be writing into it.
    with contextlib.suppress(tf.errors.OpError):
        tf.io.gfile.rmtree(path)


def write_whole(folder, name, content, partial, overwrite=True):
    """Writes a file of a folder, string or bytes, through a partial folder.

    Raises:
        tf.errors.AlreadyExistsError: if it is there and `overwrite` is false.
    """
    path = os.path.join(partial, f"{name}-{uuid.uuid4().hex}")
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(content)
    tf.io.gfile.rename(path, os.path.join(folder, name), overwrite=overwrite)


def shard_name(index, num_shards):
    """Name of a shard's file."""
    return f"shard-{index:05d}-of-{num_shards:05d}.tfrecord"


def shard_pattern(num_shards):
    """Names of all shards' files, as `file_patterns` reads it."""
    name = shard_name(0, num_shards)
    return name.replace("00000", f"{{00000..{num_shards - 1:05d}}}", 1)


def write_shard(folder, name, records, partial):
    """Writes a TFRecord file as `write_whole` does.

    Args:
        folder: where to.
        name: of the file.
        records: iterable of bytes.
        partial: a `partial_folder` of `folder`.

    Returns:
        What a manifest says of it: file, examples, bytes and sha256.
    """
    path = os.path.join(partial, f"{name}-{uuid.uuid4().hex}")
    count = 0
    with tf.io.TFRecordWriter(path) as file:
        for record in records:
            file.write(record)
            count += 1
    total, size = hashlib.sha256(), 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
            size += len(chunk)
    tf.io.gfile.rename(path, os.path.join(folder, name), overwrite=True)
    return {
        "file": name,
        "examples": count,
        "bytes": size,
        "sha256": total.hexdigest(),
    }


def finish(folder, arguments, manifest, bad, partial):
    """Writes what is written last, and removes what no run has finished.

    Args:
        folder: with all its shards.
        arguments: as in `take`.
        manifest: dictionary.
        bad: content of `bad_examples.jsonl`.
        partial: a `partial_folder` of `folder`.

    Raises:
        ValueError: as `read_manifest`: a run that began in the same moment won.
    """
    read_manifest(folder, arguments)
    write_whole(folder, BAD, bad, partial)
    write_whole(folder, MANIFEST, _dump(manifest), partial)
    for name in tf.io.gfile.listdir(folder):
        if name.startswith("partial-"):
            _remove(os.path.join(folder, name))


def _dump(content):
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _read_json(path):
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path, "rb") as file:
        return json.loads(file.read())
