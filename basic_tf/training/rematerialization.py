"""Which activations a step keeps, and which its backward pass computes again.

BASIC section 5 and figure 2: the outputs of layers with weights are kept; norms,
activations, attention weights and the whole of squeeze-and-excitation are computed
again. The encoders know nothing of it. A block of theirs is run forward without a tape;
for the backward pass it is run again under one, with the outputs of its layers with
weights as they were, so that these are not computed a second time: of such a layer only
the gradient is run, and nothing asks for its output.

The second run takes the inputs, weights, statistics and seeds of the first as values.
So it draws the same masks, and what it would assign is dropped.
"""

import functools
import math

import keras
import tensorflow as tf
from keras import layers

from basic_tf.models.mbconv import SqueezeExcitation
from basic_tf.training import mesh
from basic_tf.training.stateless_layers import ValuesScope, calling

MODES = ("none", "weightless", "block")
WEIGHTED = (layers.Conv2D, layers.DepthwiseConv2D, layers.Dense, layers.Embedding)


def stand_ins(encoder, mode):
    """What makes an encoder compute activations again.

    Args:
        encoder: built Keras model.
        mode: "none" keeps everything; "weightless" the outputs of layers with weights;
            "block" the inputs of blocks alone.

    Returns:
        From the stand-ins that are in force inside the blocks, which the second run
        needs, too, to a list of stand-ins (`stateless_layers.calling`).

    Raises:
        ValueError: for another mode.
    """
    if mode not in MODES:
        raise ValueError(f"rematerialization {mode!r} is none of {', '.join(MODES)}")
    if mode == "none":
        return lambda inside: []
    kept = weighted_layers if mode == "weightless" else lambda block: []
    return lambda inside: [
        ([block], functools.partial(_call_again, kept(block), inside))
        for block in blocks(encoder)
    ]


def blocks(encoder):
    """The layers of an encoder that are made of layers: its blocks, its stem."""
    return [
        layer
        for layer in encoder._flatten_layers(include_self=False, recursive=False)
        if _parts(layer)
    ]


def weighted_layers(layer):
    """The layers in a block whose outputs are kept, in order."""
    if isinstance(layer, SqueezeExcitation):
        return []
    if isinstance(layer, WEIGHTED):
        return [layer]
    return [found for part in _parts(layer) for found in weighted_layers(part)]


def _parts(layer):
    return list(layer._flatten_layers(include_self=False, recursive=False))


def _call_again(kept_layers, inside, block, own_call, *args, **kwargs):
    """Stands in for the `call` of a block."""
    scope = ValuesScope.current()
    structure = args, kwargs
    flat = tf.nest.flatten(structure)
    inputs = [value for value in flat if tf.is_tensor(value)]
    weights, states = block.trainable_variables, block.non_trainable_variables
    variables = [*weights, *states]
    at_rest = list(zip(variables, scope.values(variables), strict=True))

    def run(call, inputs, values):
        given = iter(inputs)
        whole = [next(given) if tf.is_tensor(value) else value for value in flat]
        args, kwargs = tf.nest.pack_sequence_as(structure, whole)
        mapping = list(zip(variables, values, strict=True))
        with ValuesScope(mapping, gathered=True) as inner:
            outputs = call(*args, **kwargs)
        return outputs, inner.values(states)

    @tf.custom_gradient
    def block_function(*tensors):
        kept = []
        with calling([(kept_layers, functools.partial(_keep, kept))]):
            outputs, after = run(own_call, *_split(tensors, len(inputs)))

        def gradient(by_outputs, *unused):
            nothing = _nothing_after(by_outputs)
            inputs_again, _ = _split(tensors, len(inputs))
            inputs_again = [_plus(value, nothing) for value in inputs_again]
            kept_again = [_plus(value, nothing) for value in kept]
            values_again = [_whole_after(nothing, *each) for each in at_rest]
            sources = [*inputs_again, *values_again[: len(weights)], *kept_again]
            made = []
            replace = functools.partial(_replace, iter(kept_again), made)
            with (
                tf.GradientTape(persistent=True, watch_accessed_variables=False) as t,
                calling([*inside, (kept_layers, replace)]),
            ):
                t.watch(sources)
                outputs, _ = run(block, inputs_again, values_again)
            gradients = _chained(t, sources, made, outputs, by_outputs)
            return [*gradients, *(None for _ in states)]

        return (outputs, *after), gradient

    outputs, *after = block_function(*inputs, *(mesh.whole(*each) for each in at_rest))
    for state, value in zip(states, after, strict=True):
        state.assign(value)
    return outputs


def _split(tensors, count):
    return tensors[:count], tensors[count:]


def _keep(kept, layer, own_call, *args, **kwargs):
    """Stands in for the `call` of a layer with weights: keeps its output."""
    outputs, activation = _without_activation(layer, own_call, args, kwargs)
    kept.append(outputs)
    return activation(outputs)


def _replace(kept, made, layer, own_call, *args, **kwargs):
    """Stands in for it in the second run: gives out what was kept."""
    outputs, activation = _without_activation(layer, own_call, args, kwargs)
    made.append(outputs)
    return activation(next(kept))


def _chained(tape, sources, made, outputs, by_outputs):
    """Gradients of a block by its inputs and weights.

    From one kept output back to those before it, as each of them is a source of its
    own. So nothing reads what was made a second time.

    Args:
        tape: persistent.
        sources: inputs and weights, then the outputs that were kept.
        made: what the layers made in their place.
        outputs, by_outputs: of the block.
    """
    totals = [None] * len(sources)
    first_kept = len(sources) - len(made)

    def add(target, by_target):
        gradients = tape.gradient(target, sources, by_target)
        for index, gradient in enumerate(gradients):
            if gradient is not None:
                total = totals[index]
                totals[index] = gradient if total is None else total + gradient

    add(outputs, by_outputs)
    for index in reversed(range(len(made))):
        if totals[first_kept + index] is not None:
            add(made[index], totals[first_kept + index])
    return totals[:first_kept]


def _without_activation(layer, own_call, args, kwargs):
    activation = getattr(layer, "activation", None) or keras.activations.linear
    layer.activation = keras.activations.linear
    try:
        return own_call(*args, **kwargs), activation
    finally:
        layer.activation = activation


def _nothing_after(signal):
    """Zero, once `signal` is there.

    What it is added to is not there before. Else the second run could come right after
    the first, or be taken for the same. (XLA heeds data alone, not control.)
    """
    number = tf.reduce_sum(tf.cast(signal, tf.float32))
    return tf.where(tf.equal(number, number), 0.0, math.nan)


def _whole_after(nothing, variable, value):
    """The value of a variable, whole: gathered again, as the first gather is not kept.

    With two meshes gathers do not wait for `nothing`: a value that goes over to the
    other mesh in the middle of a backward pass, and comes back, hangs DTensor.
    """
    if mesh.current() and mesh.current().has_both_axes:
        return _plus(mesh.whole(variable, value), nothing)
    return mesh.whole(variable, _plus(value, nothing))


def _plus(tensor, nothing):
    return tensor + tf.cast(nothing, tensor.dtype)
