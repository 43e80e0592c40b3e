"""What each transformation does to one array, and that packing undoes it."""

import numpy as np
import pytest

from basic_tf.export import name_rows


@pytest.mark.parametrize(
    ("name", "shape", "parts", "unpacked"),
    [
        ("SAME", (3, 4), 1, (3, 4)),
        ("DENSE", (3, 4), 1, (4, 3)),
        ("CONVOLUTION", (2, 3, 4, 5), 1, (4, 5, 3, 2)),
        ("THIRDS", (6,), 3, (2,)),
        ("DENSE_THIRDS", (6, 5), 3, (5, 2)),
    ],
)
def test_packing_undoes_unpacking(name, shape, parts, unpacked):
    transformation = getattr(name_rows, name)
    array = np.random.default_rng(0).normal(size=shape)
    ours = transformation.unpack(array)
    assert [part.shape for part in ours] == [unpacked] * parts
    np.testing.assert_array_equal(transformation.pack(*ours), array)


def test_a_dense_layer_multiplies_as_there():
    kernel, inputs = np.random.default_rng(0).normal(size=(2, 4, 4))
    (ours,) = name_rows.DENSE.unpack(kernel)
    np.testing.assert_allclose(inputs @ ours, inputs @ kernel.T)


def test_a_batch_norm_has_four_rows():
    rows = name_rows.batch_norm("a.bn", "b/norm")
    assert [row[:2] for row in rows] == [
        ("a.bn.weight", "b/norm/gamma"),
        ("a.bn.bias", "b/norm/beta"),
        ("a.bn.running_mean", "b/norm/moving_mean"),
        ("a.bn.running_var", "b/norm/moving_variance"),
    ]
