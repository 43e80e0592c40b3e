import numpy as np
import pytest
import tensorflow as tf

from basic_tf import slices


def test_slices_in_turn_are_the_whole():
    values = np.arange(24).reshape(6, 2, 2)
    parts = [slices.take(tf.constant(values), index, 2) for index in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts), values)


def test_parts_in_turn_are_the_whole():
    values = np.arange(24).reshape(6, 2, 2)
    parts = slices.split(tf.constant(values), 2)
    found = [parts.part(index) for index in range(3)]
    np.testing.assert_array_equal(np.concatenate(found), values)


def test_a_slice_in_a_graph_has_a_static_shape():
    @tf.function
    def shape_of(index):
        return tf.constant(slices.take(tf.zeros((6, 3)), index, 2).shape.as_list())

    assert shape_of(tf.constant(1)).numpy().tolist() == [2, 3]


def test_repeat_hands_values_on():
    @tf.function
    def powers():
        return slices.repeat(
            5, lambda index, x, total: (index + 1, 2 * x, total + index), 1, 0
        )

    assert [value.numpy() for value in powers()] == [32, 10]


@pytest.mark.parametrize(
    "number, limit, expected", [(12, 5, 4), (12, 100, 12), (7, 6, 1), (5, 0, 1)]
)
def test_the_largest_divisor_within_a_limit(number, limit, expected):
    assert slices.largest_divisor(number, limit) == expected


def test_divisors_come_from_small_to_large():
    assert slices.divisors(12) == [1, 2, 3, 4, 6, 12]
    assert slices.divisors(7) == [1, 7]


@pytest.mark.parametrize("size, expected", [(5, "3, 4, 6"), (100, "4, 6, 12")])
def test_the_nearest_sizes_are_named_in_order(size, expected):
    assert slices.nearest(slices.divisors(12), size) == expected
