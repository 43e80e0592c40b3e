"""What a device holds between steps: weights and AdaFactorW's moments, whole or split.

Weights are float32, first moments bfloat16, second moments float32: rows and columns of
those that are factored.
"""

import dataclasses
import math

from basic_tf.optimizers import adafactorw
from basic_tf.training import sharding

FLOAT32, BFLOAT16 = 4, 2


@dataclasses.dataclass(frozen=True)
class Resting:
    """Bytes of variables and moments on one device.

    Attributes:
        weights: with the moving statistics of norms.
        trained: of the weights, those that are trained.
        first_moments, second_moments: of the optimizer.
        largest: bytes of the largest trained weight, whole.
        split: bytes, of all devices together, of the weights that are split.
        largest_split: of the largest one of these.
    """

    weights: int
    trained: int
    first_moments: int
    second_moments: int
    largest: int
    split: int
    largest_split: int

    @property
    def total(self):
        """Of weights and moments."""
        return self.weights + self.first_moments + self.second_moments


def at_rest(encoders, num_model=1):
    """`Resting` of encoders together.

    Args:
        encoders: Keras models, built, with or without weights.
        num_model: devices that weights are split over.
    """
    trained = [v for encoder in encoders for v in encoder.trainable_variables]
    others = [v for encoder in encoders for v in encoder.non_trainable_variables]
    sizes = [math.prod(v.shape) for v in trained]
    axes = [None] * len(trained)
    if num_model > 1:
        axes = sharding.split_axes(trained, num_model)
    is_split = [axis is not None for axis in axes]
    parts = [num_model if each else 1 for each in is_split]
    split = [n for n, each in zip(sizes, is_split, strict=True) if each]
    own = sum(size // part for size, part in zip(sizes, parts, strict=True))
    second = sum(
        second_moments(tuple(variable.shape), axis, num_model)
        for variable, axis in zip(trained, axes, strict=True)
    )
    return Resting(
        weights=FLOAT32 * (own + sum(math.prod(v.shape) for v in others)),
        trained=FLOAT32 * own,
        first_moments=BFLOAT16 * own,
        second_moments=FLOAT32 * second,
        largest=FLOAT32 * max(sizes),
        split=FLOAT32 * sum(split),
        largest_split=FLOAT32 * max(split, default=0),
    )


def second_moments(shape, axis=None, num_model=1):
    """Numbers that a device keeps of the squares of a weight's gradients.

    Args:
        shape: of the weight.
        axis: that it is split along, over `num_model` devices; of the means that
            `AdaFactorW` keeps, those without this axis are whole.
    """
    rank = len(shape)
    kept = [range(rank)]
    if adafactorw.is_factored(shape):
        kept = [range(rank - 1), (*range(rank - 2), rank - 1)]
    return sum(
        math.prod(shape[index] for index in axes) // (num_model if axis in axes else 1)
        for axes in kept
    )
