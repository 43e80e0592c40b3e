"""What the classes of a task are called in its prompts."""

import pathlib
import re

import numpy as np
import tensorflow_datasets as tfds


def choose(name, task, label_names, prompts=None):
    """The names of a task's classes.

    Imported ones go before those of the task, and these before those of its source,
    which are tidied.

    Args:
        name: of the task.
        task: its fields; see `task_files`.
        label_names: C names, the source's.
        prompts: `prompt_sets.PromptSets` or None.

    Returns:
        C strings.

    Raises:
        ValueError: if there are not as many names as classes, if imported ones are in
            another order, or if there are none that say something.
    """
    key = task.get("imported_names", name)
    imported = (prompts.class_names if prompts else {}).get(key)
    names = imported or task.get("class_names")
    if names:
        if len(names) != len(label_names):
            raise ValueError(
                f"{name}: {len(names)} class names for {len(label_names)} classes"
            )
        if imported:
            _check_order(name, names, label_names)
        return list(names)
    if task.get("opaque_labels"):
        raise ValueError(
            f"{name}: its classes are called {label_names[0]}, {label_names[-1]} and "
            f"so on; import names for {key!r} with tools.import_prompts and give "
            "--prompts"
        )
    return [tidy(label) for label in label_names]


def tidy(label):
    """A data set's name of a class as words.

    >>> tidy("british_shorthair"), tidy("AnnualCrop"), tidy("/c/cabin/outdoor")
    ('british shorthair', 'Annual Crop', 'cabin outdoor')
    """
    label = re.sub("^/[a-z]/", "", label)  # SUN397's folders of initials
    if not re.search("[ _/-]", label):
        label = re.sub("(?<=[a-z])(?=[A-Z])", " ", label)
    return re.sub("[_/]+", " ", label).strip()


def wordnet_ids():
    """WordNet ids of ImageNet's 1,000 classes, in their order, as TFDS has them."""
    path = pathlib.Path(tfds.core.tfds_path("datasets/imagenet2012/labels.txt"))
    return path.read_text().split()


def wordnet_places(ids):
    """Where ids stand among ImageNet's, int `[C]`.

    Raises:
        ValueError: naming the ids that are none of them.
    """
    places = {wordnet_id: place for place, wordnet_id in enumerate(wordnet_ids())}
    unknown = [wordnet_id for wordnet_id in ids if wordnet_id not in places]
    if unknown:
        raise ValueError(f"not among ImageNet's classes: {', '.join(unknown[:5])}")
    return np.array([places[wordnet_id] for wordnet_id in ids])


def _check_order(name, names, label_names):
    """Refuses names of which one is that of another label."""

    def plain(text):
        return re.sub("[^a-z0-9]", "", tidy(text).lower())

    places = {plain(label): place for place, label in enumerate(label_names)}
    labels = [plain(label) for label in label_names]
    for place, given in enumerate(names):
        there = places.get(plain(given), place)
        if there != place and labels[place] != plain(given):
            raise ValueError(
                f"{name}: imported class names are in another order than the labels: "
                f"{given!r} is name {place} and label {there}"
            )
