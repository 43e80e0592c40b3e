"""Files that are written whole or not at all, and files of JSON."""

import json
import pathlib
import uuid


def write_whole(path, content):
    """Writes a file so that a kill leaves the old content or all of the new.

    Of several processes that write it at once, the last to finish wins.

    Args:
        path: the file; its folder exists.
        content: string, written as UTF-8, or bytes.
    """
    path = pathlib.Path(path)
    if isinstance(content, str):
        content = content.encode()
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_json(path):
    """The content of a JSON file, which people write.

    Raises:
        ValueError: naming the file and the place that is not JSON.
        OSError: if it cannot be read.
    """
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
