"""What the tables of weights' names are made of.

A row is what a file calls a tensor, what our model calls it, and how the one is turned
into the other.
"""

import collections

import numpy as np

# unpack: the file's array -> ours, a tuple; pack: the other way round.
Transformation = collections.namedtuple("Transformation", "unpack pack")

SAME = Transformation(lambda array: (array,), lambda array: array)
DENSE = Transformation(lambda array: (array.T,), lambda array: array.T)
CONVOLUTION = Transformation(  # [out, in, height, width] there
    lambda array: (array.transpose(2, 3, 1, 0),),
    lambda array: array.transpose(3, 2, 0, 1),
)
THIRDS = Transformation(
    lambda array: tuple(np.split(array, 3)), lambda *arrays: np.concatenate(arrays)
)
DENSE_THIRDS = Transformation(
    lambda array: tuple(third.T for third in np.split(array, 3)),
    lambda *arrays: np.concatenate([array.T for array in arrays]),
)


def norm(theirs, ours):
    """Rows of a layer norm."""
    return [(f"{theirs}.weight", f"{ours}/gamma", SAME)] + [
        (f"{theirs}.bias", f"{ours}/beta", SAME)
    ]


def batch_norm(theirs, ours):
    """Rows of a batch norm."""
    return norm(theirs, ours) + [
        (f"{theirs}.running_mean", f"{ours}/moving_mean", SAME),
        (f"{theirs}.running_var", f"{ours}/moving_variance", SAME),
    ]


def dense(theirs, ours, kernel=DENSE):
    """Rows of a layer with a bias; `kernel` is the transformation of its weights."""
    return [(f"{theirs}.weight", f"{ours}/kernel", kernel)] + [
        (f"{theirs}.bias", f"{ours}/bias", SAME)
    ]
