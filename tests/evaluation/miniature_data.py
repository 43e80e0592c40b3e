"""The papers' data sets with a few made-up images, in the format of the real ones.

What TFDS has is written by TFDS's own builders: features, file format and folders are
theirs, and only the examples that they would make of downloads are made up.
"""

import csv
import json
from unittest import mock

import numpy as np
import tensorflow_datasets as tfds

from basic_tf.evaluation import class_names
from tests.data.source_files import picture

SIZE = 8
VIDEO_LENGTH = 5


def write(task, data_dir, num_classes):
    """Writes the data of a task of `paper_tasks.json` into `data_dir`.

    Args:
        task: its fields.
        num_classes: how many of the classes of a folder or of ImageNet occur.
    """
    kind, _, rest = task["source"].partition(":")
    if kind == "tfds":
        name, _, split = rest.partition(":")
        _write_tfds(name, split.partition("[")[0], data_dir, num_classes)
    elif kind == "csv":
        _write_table(data_dir / rest.partition("?")[0])
    else:
        _write_folders(task, data_dir / rest, num_classes)
    if "rename" in task:
        _write_mappings(task, data_dir, num_classes)


def folder_names(task, num_classes):
    """What the folders of the classes are called."""
    if task.get("wordnet"):
        return class_names.wordnet_ids()[::5][:num_classes]
    return task.get("class_names") or [f"class_{i:03d}" for i in range(num_classes)]


def _write_folders(task, folder, num_classes):
    names = folder_names(task, num_classes)
    extra = ["left_out"] if "keep" in task else []
    for number, name in enumerate([*names, *extra]):
        name = f"{number:05d}" if "/" in name or " " in name else name
        (folder / name).mkdir(parents=True)
        (folder / name / "0.png").write_bytes(picture("red"))


def _write_mappings(task, data_dir, num_classes):
    names = folder_names(task, num_classes)
    rename = {name: name.replace("_", " ").title() for name in [*names, "left_out"]}
    keep = {rename[name]: "one of ImageNet's" for name in names}
    for path, content in ((task["rename"], rename), (task["keep"], keep)):
        (data_dir / path).parent.mkdir(parents=True, exist_ok=True)
        (data_dir / path).write_text(json.dumps(content))


def _write_table(path):
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", *(f"caption_{i}" for i in range(5))])
        for image in range(4):
            (path.parent / f"{image}.png").write_bytes(picture("blue"))
            writer.writerow([f"{image}.png", *(f"text {image} {i}" for i in range(5))])


def _write_tfds(name, split, data_dir, num_classes):
    builder = tfds.builder(name, data_dir=str(data_dir))
    features = builder.info.features
    if name.startswith("imagenet"):
        labels = range(0, 1000, 1000 // min(num_classes, 200))
    else:
        labels = range(10)
    generator = np.random.default_rng(0)
    examples = [
        (str(key), {k: _value(f, label, generator) for k, f in features.items()})
        for key, label in enumerate(labels)
    ]
    with mock.patch.object(
        type(builder), "_split_generators", lambda *_: {split: iter(examples)}
    ):
        builder.download_and_prepare()


def _value(feature, label, generator):
    """A made-up value of a feature; classes are numbered by `label`."""
    match feature:
        case tfds.features.ClassLabel():
            return label % feature.num_classes
        case tfds.features.Video():
            return [_pixels(feature.shape[1:], 30 * i) for i in range(VIDEO_LENGTH)]
        case tfds.features.BBoxFeature():
            return tfds.features.BBox(0.1, 0.1, 0.9, 0.9)
        case tfds.features.Image():
            return _pixels(feature.shape, 20 * (label % 10))
        case tfds.features.Text():
            return f"text {label}"
        case tfds.features.FeaturesDict():
            return {k: _value(f, label, generator) for k, f in feature.items()}
        case tfds.features.Sequence():
            count = 3 + label % 8  # as many objects as CLEVR has
            return [_value(feature.feature, label + i, generator) for i in range(count)]
    dtype = np.dtype(feature.np_dtype)
    match dtype.kind:
        case "f":
            return generator.uniform(5, 12, feature.shape).astype(dtype)
        case "O" | "S" | "U":
            return f"text {label}"
        case _:
            return dtype.type(label % 2)


def _pixels(shape, level):
    height, width, channels = (SIZE if n is None else n for n in shape)
    return np.full((height, width, channels), level, np.uint8)
