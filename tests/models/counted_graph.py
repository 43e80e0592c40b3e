"""What TensorFlow itself counts in the graph of a small encoder's forward pass."""

import math

import tensorflow as tf

PRODUCTS = ("Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2")


def graph_of(make, example):
    """The graph of an encoder that is called on an example.

    Args:
        make: makes the encoder.
        example: array, a batch of one.
    """
    with tf.Graph().as_default() as graph:
        make()(tf.constant(example))
    return graph


def multiply_adds(graph):
    """Of all products, as TensorFlow's profiler has them."""
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    node = tf.compat.v1.profiler.profile(graph, cmd="op", options=options)
    operations = 0
    while node.children:
        (node,) = node.children
        operations += node.float_ops * (node.name in PRODUCTS)
    return operations / 2


def products_with_weights(graph):
    """Size of all products with a variable, but those of squeeze-and-excitation."""
    return sum(
        math.prod(operation.outputs[0].shape)
        for operation in graph.get_operations()
        if operation.type in PRODUCTS
        and "ReadVariableOp" in [tensor.op.type for tensor in operation.inputs]
        and "/se" not in operation.name
    )
