"""Layers that read values in place of their variables, and calls in place of theirs."""

import contextlib
import functools

import keras

from basic_tf.training import mesh


class ValuesScope(keras.StatelessScope):
    """A scope in which variables have the values that they are given.

    A weight that is split over a mesh is gathered when a layer reads it.

    Args:
        mapping: list of `(Keras variable, value)`.
        gathered: whether values are whole already.
    """

    _entered = []

    def __init__(self, mapping, gathered=False):
        super().__init__(mapping, initialize_variables=False)
        self._gathered = gathered

    def get_current_value(self, variable):
        value = super().get_current_value(variable)
        if value is None or self._gathered:
            return value
        return mesh.whole(variable, value)

    def __enter__(self):
        self._entered.append(self)
        return super().__enter__()

    def __exit__(self, *args):
        self._entered.pop()
        super().__exit__(*args)

    def values(self, variables):
        """The values that variables have by now."""
        return [self.state_mapping[id(variable)] for variable in variables]

    @classmethod
    def current(cls):
        """The innermost of the scopes that have been entered."""
        return cls._entered[-1]


@contextlib.contextmanager
def calling(stand_ins):
    """Lets other functions stand in for the `call` of layers.

    Args:
        stand_ins: list of `(layers, call)`, each called as
            `call(layer, its own call, *arguments)`. What comes later stands around what
            comes before.
    """
    with contextlib.ExitStack() as stack:
        for layers, call in stand_ins:
            for layer in layers:
                stack.enter_context(_called_by(layer, call))
        yield


@contextlib.contextmanager
def _called_by(layer, call):
    before = vars(layer).get("call")
    layer.call = functools.partial(call, layer, layer.call)
    try:
        yield
    finally:
        if before is None:
            del layer.call
        else:
            layer.call = before
