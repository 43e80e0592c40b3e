"""The folder of a run belongs to one process at a time and to one configuration."""

import contextlib
import fcntl
import json
import shutil

from basic_tf import files

# What a run writes besides checkpoints, events and its configuration.
DERIVED_FILES = (
    *("tokenizer.model", "labels.json", "metrics.jsonl", "train.json"),
    *("bad_examples.jsonl", "report.json", "report.html"),
)


@contextlib.contextmanager
def exclusive(workdir):
    """Holds the folder for this process; the lock ends with it, however it ends.

    Raises:
        ValueError: if another process holds it.
    """
    with (workdir / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another process is training in {workdir}") from None
        yield


def claim(workdir, config):
    """Writes the configuration, or checks it against the run that is there.

    A folder without a checkpoint holds nothing to protect: after a first start that was
    refused, or killed early, another configuration may have it.

    Raises:
        ValueError: naming the fields that differ, or the files that would be lost in a
            folder that is not a run's.
    """
    path = workdir / "config.json"
    if not _is_run(path):
        names = ("config.json", "checkpoints", "events", *DERIVED_FILES)
        there = [name for name in names if (workdir / name).exists()]
        if there:
            raise ValueError(
                f"{workdir} holds {', '.join(there)} but not the configuration of a "
                "run; use another workdir"
            )
    if not any(workdir.glob("checkpoints/step-*.index")):
        for derived in DERIVED_FILES:
            (workdir / derived).unlink(missing_ok=True)
        shutil.rmtree(workdir / "events", ignore_errors=True)
        files.write_whole(path, config.to_json_best_effort(indent=2))
        return
    there = _flatten(json.loads(path.read_text()))
    ours = _flatten(json.loads(config.to_json_best_effort()))
    differing = [
        f"{key} (there {there.get(key)}, now {ours.get(key)})"
        for key in sorted(there.keys() | ours.keys())
        if there.get(key) != ours.get(key)
    ]
    if differing:
        raise ValueError(
            f"{workdir} holds a run of another configuration: {', '.join(differing)}; "
            "use another workdir"
        )


def check_shared(workdir):
    """For processes beside the chief, which has claimed the folder.

    Raises:
        ValueError: if they see another folder than it.
    """
    if not _is_run(workdir / "config.json"):
        raise ValueError(
            f"{workdir} is not that of the chief; all machines must share one"
        )


def _is_run(path):
    """Whether a file is the configuration of a run."""
    try:
        return "phase_order" in json.loads(path.read_text())
    except (OSError, ValueError):
        return False


def _flatten(tree, prefix=""):
    if not isinstance(tree, dict):
        return {prefix: tree}
    return {
        key: value
        for name, branch in tree.items()
        for key, value in _flatten(
            branch, f"{prefix}.{name}" if prefix else name
        ).items()
    }
