"""The configuration of a run that was trained before: `repeat.py:WORKDIR`."""

import json
import pathlib

from ml_collections import ConfigDict


def get_config(workdir=""):
    """The configuration in a run's folder, as a `ConfigDict`.

    Raises:
        ValueError: if the folder holds none.
    """
    path = pathlib.Path(workdir) / "config.json"
    if not path.is_file():
        raise ValueError(f"there is no {path}; name a run's folder")
    return ConfigDict(json.loads(path.read_text()))
