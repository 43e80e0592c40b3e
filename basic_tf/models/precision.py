"""In what precision the layers inside a layer compute."""

import contextlib
import functools
import inspect

import keras

POLICIES = ("float32", "mixed_bfloat16")


@contextlib.contextmanager
def policy(dtype):
    """Makes `dtype`, a Keras dtype policy or its name, the global one for a while."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def handed_down(layer_class):
    """Class decorator: the layers that a layer makes have its dtype policy.

    By themselves they would have the global policy of the time when they are made, and
    a copy, or one read from a file, would compute otherwise than its `dtype` says.

    Args:
        layer_class: a `keras.Layer` that makes others in `__init__` or `build`, and
            hands `dtype` on to `Layer`.
    """
    make, build = layer_class.__init__, layer_class.build

    @functools.wraps(make)
    def make_under_own(self, *args, dtype=None, **kwargs):
        with policy(keras.dtype_policies.get(dtype)):
            make(self, *args, dtype=dtype, **kwargs)

    # Keras looks at the arguments in two ways, one of which passes `wraps` by.
    make_under_own.__signature__ = inspect.signature(make)

    @functools.wraps(build)
    def build_under_own(self, *args, **kwargs):
        with policy(self.dtype_policy):
            build(self, *args, **kwargs)

    layer_class.__init__, layer_class.build = make_under_own, build_under_own
    return layer_class
