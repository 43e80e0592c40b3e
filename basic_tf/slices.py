"""Going through a tensor in equal slices, one at a time, in a graph."""

import tensorflow as tf


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


def largest_divisor(number, limit):
    """The largest divisor of `number` that is at most `limit` (and at least 1)."""
    return max(d for d in range(1, max(1, min(number, limit)) + 1) if number % d == 0)
