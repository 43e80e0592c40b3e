"""Labels and captions of data sets of TFDS that the papers' tasks are made of.

The thresholds of distances are those of VTAB (Zhai et al. 2019), whose tasks CLIP
evaluates.
"""

import numpy as np
import tensorflow as tf

from basic_tf.data import tfds_reading

DIFFICULT = " (difficult)"  # ends the names of VOC's objects that do not count
MAX_CAPTIONS = 5  # of an image of COCO, as is usual; few have more
_CLEVR_DISTANCES = (8.0, 8.5, 9.0, 9.5, 10.0)
_KITTI_DISTANCES = (8.0, 20.0, 999.0)  # metres; beyond the last, no vehicle
_NUM_VEHICLE_TYPES = 3  # the first of KITTI's: car, van, truck


def _voc_labels(features):
    """Classes of objects, and C more than those of which all objects are difficult."""
    num_classes = 20
    easy = features["labels_no_difficult"]
    others = tf.sparse.to_dense(
        tf.sets.difference(features["labels"][tf.newaxis], easy[tf.newaxis])
    )
    return tf.concat([easy, num_classes + others[0]], axis=0)


def _voc_names(features):
    names = features["labels"].feature.names
    return [*names, *(f"{name}{DIFFICULT}" for name in names)]


def multi_label_targets(examples):
    """What VOC's metric takes of `examples` read as `voc`.

    Returns:
        `(targets [N, C] int8, C names)`; 1 where a class occurs, -1 where all that
        occurs of it is difficult, which is neither right nor wrong, and 0 elsewhere.
    """
    names = [name for name in examples.label_names if not name.endswith(DIFFICULT)]
    targets = np.zeros((len(examples), len(names)), np.int8)
    for row, labels in enumerate(examples.label_sets):
        for label in labels:
            difficult, column = divmod(label, len(names))
            targets[row, column] = -1 if difficult else 1
    return targets, names


def _interval(value, thresholds):
    """In which of the intervals between ascending thresholds a value lies, `[1]`."""
    return tf.reduce_sum(tf.cast(value > thresholds, tf.int64))[tf.newaxis]


def _clevr_count(features):
    return tf.size(features["objects"]["size"], tf.int64)[tf.newaxis] - 3


def _clevr_distance(features):
    return _interval(
        tf.reduce_min(features["objects"]["pixel_coords"][:, 2]), _CLEVR_DISTANCES
    )


def _kitti_distance(features):
    objects = features["objects"]
    depths = objects["location"][:, 2][objects["type"] < _NUM_VEHICLE_TYPES]
    return _interval(tf.reduce_min(tf.concat([depths, [1000.0]], 0)), _KITTI_DISTANCES)


def _fixed(*names):
    return lambda features: list(names)


def _middle(frames):
    return frames[tf.size(frames) // 2]


READINGS = {
    "voc": tfds_reading.Reading(
        ("labels", "labels_no_difficult"), _voc_labels, _voc_names
    ),
    "clevr_count": tfds_reading.Reading(
        ("objects",), _clevr_count, _fixed(*(str(count) for count in range(3, 11)))
    ),
    "clevr_distance": tfds_reading.Reading(
        ("objects",),
        _clevr_distance,
        _fixed(*"below_8 8_to_8.5 8.5_to_9 9_to_9.5 9.5_to_10 above_10".split()),
    ),
    "kitti_distance": tfds_reading.Reading(
        ("objects",),
        _kitti_distance,
        _fixed(*"below_8_m 8_to_20_m beyond_20_m no_vehicle".split()),
    ),
    # CLIP classifies the middle frame of a video (its section A.1).
    "middle_frame": tfds_reading.Reading(
        ("label",),
        lambda features: features["label"][tf.newaxis],
        lambda features: features["label"].names,
        image="video",
        choose=_middle,
    ),
    "captions": tfds_reading.Reading(
        ("captions",),
        lambda features: features["captions"]["text"][:MAX_CAPTIONS],
    ),
}
