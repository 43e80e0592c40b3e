"""Several sources in one set, each with its share of every batch.

A labelled set joins a contrastive mixture as texts made of its labels (BASIC section
7.1), and the labelled part of a mixture serves phase 1.
"""

import itertools
import re

import numpy as np

from basic_tf.data import image_places, sources

_WEIGHT = r"[\d.]+\*"


def load(source, data_dir=None):
    """Reads a source, or several.

    Args:
        source: one, as `sources.load` takes it; several as `[(source, weight)]` or, in
            a line, as `"3*csv:pairs.csv + 1*folder:photos"`.
        data_dir: as there.

    Returns:
        `sources.Examples`. Of several sources the labels are numbered anew: those of
        the same name are one.

    Raises:
        ValueError: as `sources.load`, and for a weight that is not more than 0.
    """
    if isinstance(source, str):
        if not re.match(_WEIGHT, source):
            return sources.load(source, data_dir)
        parts = re.split(rf" \+ (?={_WEIGHT})", source)
        pairs = (part.split("*", 1) for part in parts)
        source = [(name, float(weight)) for weight, name in pairs]
    for name, weight in source:
        if not weight > 0:
            raise ValueError(
                f"the weight of {name} is {weight} and must be more than 0"
            )
    parts = [sources.load(name, data_dir) for name, _ in source]
    return mix(parts, [weight for _, weight in source])


def mix(parts, weights):
    """Joins sets of examples.

    Args:
        parts: `sources.Examples`, each of one source.
        weights: their shares of a batch; they need not add up to 1.

    Returns:
        `sources.Examples`.
    """
    label_names = list(dict.fromkeys(_chain(part.label_names for part in parts)))
    of_name = {name: index for index, name in enumerate(label_names)}
    labels, label_sets = [], []
    for part in parts:
        new = [of_name[name] for name in part.label_names]
        unlabelled = [-1] * len(part)
        labels += [new[i] if i >= 0 else -1 for i in part.labels or unlabelled]
        old_sets = part.label_sets or [[]] * len(part)
        label_sets += [[new[i] for i in old] for old in old_sets]
    total = sum(weights)
    return sources.Examples(
        images=image_places.Several([part.images for part in parts]),
        captions=_chain(part.captions for part in parts),
        labels=labels if label_names else [],
        label_sets=label_sets if label_names else [],
        label_names=label_names,
        keys=_chain(part.keys or [""] * len(part) for part in parts),
        caption_counts=np.concatenate([part.caption_counts for part in parts]),
        origins=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        weights=tuple(weight / total for weight in weights),
        bad=tuple(_chain(part.bad for part in parts)),
    )


def _chain(lists):
    return list(itertools.chain.from_iterable(lists))
