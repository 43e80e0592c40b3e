"""Going through a tensor in equal slices, one at a time, in a graph."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Parts:
    """A batch in equal parts: `values` is `[parts, size, ...]`."""

    values: tf.Tensor

    def part(self, index):
        """`[size, ...]`."""
        # DTensor gives a wrong part for `self.values[index]`.
        return tf.gather(self.values, index)


def split(values, size):
    """`[n, ...]` -> `Parts` of `[size, ...]` each."""
    shape = [values.shape[0] // size, size, *values.shape[1:]]
    return Parts(tf.reshape(values, shape))


def take(values, index, size):
    """Slice `index` of `[n, ...]`: `[size, ...]`, static, as XLA needs it."""
    shape = [size, *values.shape[1:]]
    begin = [index * size] + [0] * (len(shape) - 1)
    return tf.ensure_shape(tf.slice(values, begin, shape), shape)


def repeat(count, body, *values):
    """Runs `body(index, *values) -> (index + 1, *values)` `count` times; the values.

    TensorFlow would run ten iterations side by side, and hold the activations of all.
    """
    return tf.while_loop(
        lambda index, *_: index < count,
        body,
        (0, *values),
        parallel_iterations=1,
        maximum_iterations=count,
    )[1:]


def divisors(number):
    """What divides a number, from small to large."""
    return [d for d in range(1, number + 1) if number % d == 0]


def largest_divisor(number, limit):
    """The largest divisor of `number` that is at most `limit` (and at least 1)."""
    return max(d for d in divisors(number) if d <= max(1, limit))


def nearest(sizes, size):
    """The three of some sizes that are nearest to one, for a message: "1, 2, 4"."""
    chosen = sorted(sizes, key=lambda other: abs(other - size))[:3]
    return ", ".join(map(str, sorted(chosen)))
