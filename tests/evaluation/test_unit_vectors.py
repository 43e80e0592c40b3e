import numpy as np
import pytest

from basic_tf.evaluation import unit_vectors


def test_unit_vectors_pass_in_any_precision():
    rows = np.random.default_rng(0).normal(size=(50, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for dtype in (np.float64, np.float32):
        checked = unit_vectors.check("images", rows.astype(dtype))
        np.testing.assert_array_equal(checked, rows.astype(dtype))


@pytest.mark.parametrize("value, length", [(np.nan, "nan"), (0.0, "0"), (2.0, "2")])
def test_the_first_row_of_another_length_is_named(value, length):
    rows = np.eye(4)
    rows[2, 2] = rows[3, 3] = value
    with pytest.raises(ValueError, match=f"row 2 of texts has length {length};"):
        unit_vectors.check("texts", rows)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (2, 3, 4)])
def test_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"texts of shape .* must be \[N, D\]"):
        unit_vectors.check("texts", np.ones(shape))
