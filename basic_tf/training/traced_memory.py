"""What a device holds that runs one operation at a time, counted in a traced graph.

Nothing is run and no weight is made. A tensor takes memory from the operation that
makes it until the last one that reads it has run; what the forward pass keeps for the
backward pass is what the operations of the gradient read. So GELU and norms, which
TensorFlow takes apart, count with every part that a gradient looks at, a softmax with
its output alone, and ReLU with what its gradient shares with the next layer.
"""

import collections
import dataclasses

import keras
import tensorflow as tf

BATCH_SIZE = 1009  # a prime: what is a multiple of it is of every example

# Outputs that are their inputs.
VIEWS = frozenset(
    "ExpandDims Identity IdentityN PreventGradient Reshape Squeeze StopGradient".split()
)
# Outputs that take the place of an input of their size that nobody reads any more, as
# TensorFlow's kernels forward their buffers.
IN_PLACE = frozenset(
    "AddN AddV2 BiasAdd Cast Erf Exp Maximum Mul Neg RealDiv Relu ReluGrad Rsqrt "
    "Sigmoid SigmoidGrad Softmax Sqrt Square SquaredDifference Sub Tanh "
    "TanhGrad".split()
)
NO_MEMORY = frozenset({"Const", "NoOp", "Placeholder"})  # inputs are counted elsewhere


@dataclasses.dataclass(frozen=True, order=True)
class Held:
    """Bytes held at one moment: `per_example` of every example, `fixed` of none."""

    per_example: int = 0
    fixed: int = 0

    def __add__(self, other):
        return Held(self.per_example + other.per_example, self.fixed + other.fixed)

    def __sub__(self, other):
        return Held(self.per_example - other.per_example, self.fixed - other.fixed)

    def bytes(self, batch_size):
        return self.per_example * batch_size + self.fixed


@dataclasses.dataclass(frozen=True)
class Passes:
    """What an encoder holds of a batch, beside weights, their gradients and its input.

    Attributes:
        kept: `Held` from the forward pass to the backward pass.
        moments: tuple of `Held` in the course of both passes, with what is kept; those
            that are the largest of all for some size of the batch.
        twice: the same where another backward pass follows: this one frees nothing.
    """

    kept: Held
    moments: tuple
    twice: tuple

    def peak(self, batch_size, twice=False):
        """Bytes at the largest moment, with one backward pass or two."""
        moments = self.twice if twice else self.moments
        return max(moment.bytes(batch_size) for moment in moments)


def trace(encoder, shape):
    """Traces an encoder and the gradient by its weights.

    Args:
        encoder: built, with or without weights (`description.without_weights`).
        shape: of its input, without the batch: `(H, W, 3)` float32 or `(L,)` int32.

    Returns:
        `Passes`.
    """
    variables = encoder.trainable_variables + encoder.non_trainable_variables
    with tf.Graph().as_default() as graph:
        values = [_input(v.shape, v.dtype) for v in variables]
        inputs = _input((BATCH_SIZE, *shape), "int32" if len(shape) == 1 else "float32")
        scope = keras.StatelessScope(list(zip(variables, values, strict=True)))
        with scope:
            outputs = encoder(inputs, training=True)
            after = [
                scope.get_current_value(v) for v in encoder.non_trainable_variables
            ]
        forward = frozenset(graph.get_operations())
        weights = values[: len(encoder.trainable_variables)]
        seeds = _input(outputs.shape, outputs.dtype)
        gradients = [
            tf.convert_to_tensor(gradient)
            for gradient in tf.gradients(outputs, weights, seeds)
        ]
    kept = _kept(graph, forward, gradients)
    ends = [*gradients, outputs, *after]
    return Passes(
        kept=sum(map(size_of, kept), Held()),
        moments=largest(_moments(graph, ends, gradients)),
        twice=largest(_moments(graph, ends + kept, gradients)),
    )


def traced_peak(function, *shapes):
    """Bytes that a function of float32 values and its gradient hold at most.

    Args:
        function: from tensors to a scalar.
        shapes: of the tensors, which are not counted; their gradients are.
    """
    with tf.Graph().as_default() as graph:
        inputs = [_input(shape, "float32") for shape in shapes]
        value = function(*inputs)
        outputs = [value, *tf.gradients(value, inputs)]
    return max(held.fixed for held in _moments(graph, outputs, scale=None))


def _input(shape, dtype):
    return tf.compat.v1.placeholder(dtype, shape)


def largest(moments):
    """The moments that no other exceeds in both parts."""
    chosen = []
    for moment in sorted(set(moments), reverse=True):
        if not chosen or moment.fixed > chosen[-1].fixed:
            chosen.append(moment)
    return tuple(chosen)


def size_of(tensor, scale=BATCH_SIZE):
    """`Held` of a tensor; all of it is fixed where `scale` is None."""
    count = tensor.shape.num_elements()
    if scale and count % scale == 0:
        return Held(per_example=count // scale * tensor.dtype.size)
    return Held(fixed=count * tensor.dtype.size)


def _roots(operations):
    """From names of tensors to the tensor whose memory they take."""
    roots = {}
    for operation in operations:
        views = operation.type in VIEWS
        sources = operation.inputs if views else operation.outputs
        # A reshape has its shape as a second input.
        for source, output in zip(sources, operation.outputs, strict=False):
            roots[output.name] = roots[source.name] if views else output
    return roots


def _kept(graph, forward, gradients):
    """The tensors of the forward pass that operations of the gradients read."""
    roots = _roots(graph.get_operations())
    made = {
        output.name
        for operation in forward
        if operation.type not in NO_MEMORY | VIEWS
        for output in operation.outputs
    }
    needed = _needed(graph, gradients)
    read = {
        roots[source.name].name: roots[source.name]
        for operation in needed
        if operation not in forward
        for source in operation.inputs
    }
    return [tensor for name, tensor in read.items() if name in made]


def _needed(graph, outputs):
    """The operations that outputs depend on, in the order in which they were traced."""
    needed, waiting = set(), [output.op for output in outputs]
    while waiting:
        operation = waiting.pop()
        if operation not in needed:
            needed.add(operation)
            waiting += [source.op for source in operation.inputs]
            waiting += operation.control_inputs
    return [operation for operation in graph.get_operations() if operation in needed]


def _moments(graph, outputs, uncounted=(), scale=BATCH_SIZE):
    """`Held` after the outputs of each operation have been made.

    Args:
        graph: TensorFlow graph.
        outputs: tensors that are kept to the end.
        uncounted: those of them that take no memory.
        scale: see `size_of`.
    """
    operations = _needed(graph, outputs)
    roots = _roots(operations)
    readers = collections.Counter(roots[output.name].name for output in outputs)
    for operation in operations:
        if operation.type not in VIEWS:
            readers.update({roots[source.name].name for source in operation.inputs})
    free = {roots[output.name].name for output in uncounted}
    held, sizes = Held(), {}
    for operation in operations:
        if operation.type in VIEWS | NO_MEMORY:
            continue
        read = {roots[source.name].name for source in operation.inputs}
        last = [name for name in read if readers[name] == 1 and name in sizes]
        for output in operation.outputs:
            size = Held() if output.name in free else size_of(output, scale)
            taken = [name for name in last if sizes[name] == size]
            if operation.type in IN_PLACE and taken:
                sizes[taken[0]] = Held()
                last.remove(taken[0])
            else:
                held += size
            sizes[output.name] = size
        yield held
        readers.subtract(read)
        unread = [output.name for output in operation.outputs]
        for name in [*read, *unread]:
            if readers[name] == 0 and name in sizes:
                held -= sizes.pop(name)
