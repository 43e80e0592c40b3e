"""Against naive counts."""

import collections

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.evaluation import confusion


@st.composite
def classifications(draw):
    num_classes = draw(st.integers(1, 6))
    classes = st.integers(0, num_classes - 1)
    pairs = draw(st.lists(st.tuples(classes, classes), min_size=1, max_size=40))
    labels, predictions = np.array(pairs).T
    return labels, predictions, num_classes


def naive_pairs(labels, predictions):
    totals = collections.Counter(labels.tolist())
    pairs = zip(labels.tolist(), predictions.tolist(), strict=True)
    counts = collections.Counter((t, p) for t, p in pairs if t != p)
    rows = [(t, p, count, count / totals[t]) for (t, p), count in counts.items()]
    return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))


@given(classifications(), st.integers(1, 40))
def test_most_confused_pairs_are_the_naive_counts(classification, limit):
    labels, predictions, num_classes = classification
    pairs = confusion.most_confused(labels, predictions, num_classes, limit)
    assert pairs == naive_pairs(labels, predictions)[:limit]


def test_a_class_without_an_example_keeps_its_row_and_column():
    matrix = confusion.confusion_matrix([0, 0, 2], [0, 2, 2], 4)
    np.testing.assert_array_equal(
        matrix, [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    )
