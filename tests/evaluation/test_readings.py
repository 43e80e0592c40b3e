"""Labels of made-up annotations, against the definitions written out in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import sources
from basic_tf.evaluation import readings


def read(name, **features):
    tensors = tf.nest.map_structure(tf.constant, features)
    return readings.READINGS[name].read(tensors).numpy().tolist()


def voc(labels, easy):
    return read(
        "voc",
        labels=np.array(labels, np.int64),
        labels_no_difficult=np.array(easy, np.int64),
    )


def test_classes_of_difficult_objects_alone_are_apart():
    assert voc([3, 7, 19], [7]) == [7, 23, 39]
    assert voc([3, 7], [3, 7]) == [3, 7]
    assert voc([5], []) == [25]
    assert voc([], []) == []


def test_difficult_objects_count_neither_way():
    names = [f"class {index}" for index in range(20)]
    names += [f"{name}{readings.DIFFICULT}" for name in names]
    rows = [voc([3, 7, 19], [7]), voc([], []), voc([3], [3])]
    examples = sources.Examples([b""] * 3, [""] * 3, label_sets=rows, label_names=names)
    targets, found = readings.multi_label_targets(examples)
    assert found == names[:20]
    expected = np.zeros((3, 20), int)
    expected[0, 7], expected[0, [3, 19]], expected[2, 3] = 1, -1, 1
    np.testing.assert_array_equal(targets, expected)


@pytest.mark.parametrize("count", [3, 7, 10])
def test_clevr_counts_from_three(count):
    assert read("clevr_count", objects={"size": np.zeros(count, np.int64)}) == [
        count - 3
    ]


def test_clevrs_distance_is_that_of_the_closest_object():
    generator = np.random.default_rng(0)
    thresholds = np.array([8.0, 8.5, 9.0, 9.5, 10.0])  # VTAB's
    for _ in range(50):
        coordinates = generator.uniform(7, 14, (3, 3)).astype(np.float32)
        (label,) = read("clevr_distance", objects={"pixel_coords": coordinates})
        assert label == np.sum(coordinates[:, 2].min() > thresholds)


@pytest.mark.parametrize(
    ("types", "depths", "expected"),
    [
        ([0, 1], [30.0, 7.5], 0),
        ([2], [8.5], 1),
        ([0], [20.5], 2),
        ([3, 4], [5.0, 6.0], 3),  # pedestrians are no vehicles
        ([3, 1], [5.0, 60.0], 2),
        ([], [], 3),
    ],
)
def test_kittis_distance_is_that_of_the_closest_vehicle(types, depths, expected):
    location = np.zeros((len(types), 3), np.float32)
    location[:, 2] = depths
    objects = {"type": np.array(types, np.int64), "location": location}
    assert read("kitti_distance", objects=objects) == [expected]


def test_an_image_has_five_captions_at_most():
    texts = np.array([f"text {index}" for index in range(7)])
    found = read("captions", captions={"text": texts})
    assert [text.decode() for text in found] == texts[:5].tolist()


def test_the_middle_frame_is_chosen():
    choose = readings.READINGS["middle_frame"].choose
    for count, middle in ((1, 0), (4, 2), (5, 2)):
        frames = tf.constant([str(index) for index in range(count)])
        assert choose(frames).numpy() == str(middle).encode()
