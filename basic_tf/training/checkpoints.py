"""Checkpoints of a run: atomic, the newest complete one wins, the last few are kept."""

import pathlib

import tensorflow as tf
from absl import logging

KEPT = 3
# What the reader raises for files that are cut off, empty or overwritten.
_READ_ERRORS = (IndexError, RuntimeError, ValueError, tf.errors.OpError)
# Of these, what says nothing about the file.
_NO_DAMAGE = (tf.errors.PermissionDeniedError, tf.errors.ResourceExhaustedError)


def save(directory, step, variables):
    """Writes the checkpoint of a step and drops the oldest others beyond `KEPT`.

    The index file, which makes a checkpoint count, is written last.

    Args:
        directory: folder, made when missing.
        step: steps of the whole run so far.
        variables: `{name: tf.Variable}`.
    """
    prefix = pathlib.Path(directory) / f"step-{step:08d}"
    _checkpoint(variables).write(str(prefix))
    others = [other for other in _prefixes(directory) if other != prefix]
    for old in others[KEPT - 1 :]:
        for file in old.parent.glob(f"{old.name}.*"):
            file.unlink()


def read(directory, names):
    """Values of a few variables in the newest checkpoint that can be read.

    Returns:
        `(prefix, {name: array})`, or `(None, {})` without a complete checkpoint. One
        that is damaged is named in a warning and passed over.

    Raises:
        ValueError: if there are checkpoints and all are damaged.
    """
    prefixes = _prefixes(directory)
    for prefix in prefixes:
        try:
            reader = tf.train.load_checkpoint(str(prefix))
            for name in reader.get_variable_to_shape_map():
                reader.get_tensor(name)  # checks the bytes of every tensor
        except _READ_ERRORS as error:
            if isinstance(error, _NO_DAMAGE):
                raise
            reason = str(error).strip().partition("\n")[0]
            logging.warning("%s is damaged and was passed over: %s", prefix, reason)
            continue
        return prefix, {name: reader.get_tensor(_key(name)) for name in names}
    if prefixes:
        raise ValueError(
            f"none of the {len(prefixes)} checkpoints in {directory} can be read; move "
            "the folder away to begin anew"
        )
    return None, {}


def restore(prefix, variables):
    """Sets `variables`, `{name: tf.Variable}`, from a checkpoint.

    Raises:
        ValueError: naming the variables that the checkpoint lacks or holds with another
            shape or dtype; then nothing is set.
    """
    reader = tf.train.load_checkpoint(str(prefix))
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    wrong = []
    for name, variable in variables.items():
        there = shapes.get(_key(name)), dtypes.get(_key(name))
        if there != (list(variable.shape), variable.dtype):
            there = f"{there[0]} {there[1].name}" if there[1] else "none"
            ours = f"{tuple(variable.shape)} {variable.dtype.name}"
            wrong.append(f"{name} {ours} (stored: {there})")
    if wrong:
        raise ValueError(f"{prefix} does not fit this model: {', '.join(wrong)}")
    _checkpoint(variables).read(str(prefix)).expect_partial()


def by_path(group, variables):
    """What a checkpoint holds of Keras variables, `{"group/path": tf.Variable}`.

    Raises:
        ValueError: naming a path that two variables share, of which one would be lost.
    """
    named = {}
    for variable in variables:
        name = f"{group}/{variable.path}"
        if name in named:
            raise ValueError(
                f"two variables are called {name}; a checkpoint needs a path for each"
            )
        named[name] = variable.value
    return named


def newest(directory):
    """Path of the newest checkpoint, read or not; None without any."""
    return next(iter(_prefixes(directory)), None)


def by_step(directory):
    """`{step of the run: path}` of all checkpoints, oldest first, read or not."""
    return {int(p.name.partition("-")[2]): p for p in reversed(_prefixes(directory))}


def _prefixes(directory):
    """Checkpoints with an index file, newest first."""
    indices = pathlib.Path(directory).glob("step-*.index")
    return sorted((index.with_suffix("") for index in indices), reverse=True)


def _checkpoint(variables):
    # A flat dictionary by path: Keras models in `tf.train.Checkpoint(model=...)` lose
    # the variables of layers that sit in lists.
    return tf.train.Checkpoint(**variables)


def _key(name):
    """The key of a variable in the files, where TensorFlow escapes `.` and `/`."""
    escaped = name.replace(".", "..").replace("/", ".S")
    return f"{escaped}/.ATTRIBUTES/VARIABLE_VALUE"
