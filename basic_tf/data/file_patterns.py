"""Names of many files in one: `shard-{00000..00099}.tar`, `part-*.tfrecord`."""

import itertools
import re

import tensorflow as tf

MAX_FILES = 100_000


def find(pattern):
    """The files that a pattern stands for, sorted within each wildcard.

    Args:
        pattern: a path of whatever `tf.io.gfile` reads; braces are expanded as a shell
            does, then the wildcards `*`, `?` and `[...]`.

    Raises:
        FileNotFoundError: if a name without wildcards does not exist, or nothing
            matches one with them.
        ValueError: for braces that stand for more than `MAX_FILES` names.
    """
    found = []
    for name in expand_braces(pattern):
        if re.search(r"[*?\[]", name):
            files = sorted(tf.io.gfile.glob(name))
        else:
            files = [name] if tf.io.gfile.exists(name) else []
        if not files:
            raise FileNotFoundError(f"no file {name}")
        found += files
    return found


def expand_braces(pattern):
    """`a{1..3}` and `a{x,y}`, any number of times and nested; other braces stay.

    >>> expand_braces("{train,val}-{08..10}.tar")[:4]
    ['train-08.tar', 'train-09.tar', 'train-10.tar', 'val-08.tar']
    """
    names = list(itertools.islice(_expand(pattern), MAX_FILES + 1))
    if len(names) > MAX_FILES:
        raise ValueError(f"{pattern} stands for more than {MAX_FILES} names")
    return list(dict.fromkeys(names))  # of braces in braces each comes once


def _expand(pattern):
    for match in re.finditer(r"\{([^{}]*)\}", pattern):  # innermost, from the left
        choices = _choices(match[1])
        if choices:
            break
    else:
        yield pattern
        return
    for choice in choices:
        yield from _expand(pattern[: match.start()] + choice + pattern[match.end() :])


def _choices(inside):
    """What braces with this inside may stand for; empty if they are none."""
    bounds = re.fullmatch(r"(\d+)\.\.(\d+)", inside)
    if not bounds:
        return inside.split(",") if "," in inside else []
    first, last = int(bounds[1]), int(bounds[2])
    step = 1 if last >= first else -1
    # As in a shell, a leading zero pads all to one width.
    texts = (bounds[1], bounds[2])
    padded = any(len(text) > 1 and text[0] == "0" for text in texts)
    width = max(map(len, texts)) if padded else 0
    numbers = range(first, last + step, step)[: MAX_FILES + 1]
    return [f"{number:0{width}d}" for number in numbers]
