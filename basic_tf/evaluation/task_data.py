"""Where the data of a task lie, and what to do where they are missing."""

import os
import pathlib

from basic_tf.data import file_patterns

_DRAWN = "glyphs"  # the data set of TFDS that downloads nothing


def folder(data_dir=None):
    """The folder of all data: `data_dir`, or else TFDS's own."""
    default = os.environ.get("TFDS_DATA_DIR", "~/tensorflow_datasets")
    return pathlib.Path(data_dir or default).expanduser()


def resolve(source, data_dir=None):
    """A source whose relative path is one in the folder of the data."""
    kind, _, rest = source.partition(":")
    if kind == "tfds" or "://" in rest:
        return source
    return f"{kind}:{folder(data_dir) / rest}"


def is_here(source, data_dir=None):
    """Whether a source can be read without a network; nothing of it is read."""
    kind, _, rest = resolve(source, data_dir).partition(":")
    if kind == "tfds":
        name = rest.partition(":")[0]
        if name.partition("/")[0] == _DRAWN:
            return True
        # NAME/VERSION or NAME/CONFIG/VERSION; the last file that TFDS writes.
        return any(folder(data_dir).glob(f"{name}/*/dataset_info.json"))
    if kind == "folder":
        return pathlib.Path(rest).is_dir()
    try:
        return bool(file_patterns.find(rest.partition("?")[0]))
    except FileNotFoundError:
        return False


def require(name, task, data_dir=None):
    """Refuses a task whose data are not there.

    Args:
        name: of the task.
        task: its fields.
        data_dir: see `folder`.

    Raises:
        ValueError: with what to download, and where to put it.
    """
    source = resolve(task["source"], data_dir)
    if is_here(source, data_dir):
        return
    kind, _, rest = source.partition(":")
    steps = [task["download"]] if "download" in task else []
    if kind == "tfds":
        build = f"tfds build {rest.partition(':')[0]} --data_dir {folder(data_dir)}"
        steps.append(f"prepare them with: {build}")
        place = folder(data_dir)
    else:
        place = rest
    raise ValueError(f"{name}: no data in {place}; {'; '.join(steps) or source}")
