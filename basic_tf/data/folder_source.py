"""`folder:DIR`: a folder of images for each class, which it is named after."""

import os

import tensorflow as tf
from absl import logging

from basic_tf.data import example_table, image_places

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")


def load(folder):
    """Lists the images in the folders of a folder, at any depth.

    Files of other kinds are left out, hidden ones without a word.

    Args:
        folder: `DIR`, where the images of class C lie in `DIR/C`.

    Returns:
        `Examples`, in the order of their names.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it holds no class folder with an image.
    """
    if not tf.io.gfile.isdir(folder):
        raise FileNotFoundError(f"no folder {folder}")
    found, num_others = example_table.Collector(), 0
    for name in _entries(folder):
        if not tf.io.gfile.isdir(os.path.join(folder, name)):
            num_others += 1
            continue
        for path in _files(os.path.join(folder, name)):
            if path.lower().endswith(IMAGE_EXTENSIONS):
                key = path.removeprefix(folder).lstrip("/")
                found.add(path, [], [name], key)
            else:
                num_others += 1
    if num_others:
        logging.warning(
            "%s: %d files left out that are not %s files in a class's folder",
            folder, num_others, ", ".join(IMAGE_EXTENSIONS),
        )  # fmt: skip
    if not found.keys:
        raise ValueError(
            f"{folder} has no folder with images in it, one for each class"
        )
    return found.finish(folder, image_places.Files)


def _entries(folder):
    names = (name.rstrip("/") for name in tf.io.gfile.listdir(folder))
    return sorted(name for name in names if not name.startswith("."))


def _files(folder):
    for name in _entries(folder):
        path = os.path.join(folder, name)
        if tf.io.gfile.isdir(path):
            yield from _files(path)
        else:
            yield path
