"""Multi-head self-attention with an additive bias, for images and text."""

import keras
from keras import layers, ops

from basic_tf.models import precision


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class SelfAttention(layers.Layer):
    """`softmax(Q K^T / sqrt(d) + bias) V`, projected (Vaswani et al. 2017).

    Built of plain `Dense` layers; the `EinsumDense` of
    `keras.layers.MultiHeadAttention` is slower on CPUs.

    Args:
        filters: width of all heads together.
        num_heads: must divide `filters`.
        output_dim: width of the output; that of the heads where None.

    Input `[B, L, C]`; `bias` broadcastable to `[B, heads, Q, L]`, added to the logits;
    `queries` `[B, Q, C]`, what attends to the input, the input itself where None.
    Output `[B, Q, output_dim]`.

    Raises:
        ValueError: if `num_heads` does not divide `filters`.

    Example:
        >>> SelfAttention(64, num_heads=2)(keras.ops.ones((3, 16, 32))).shape
        TensorShape([3, 16, 64])
    """

    def __init__(self, filters, num_heads, output_dim=None, **kwargs):
        super().__init__(**kwargs)
        if num_heads < 1 or filters % num_heads:
            raise ValueError(
                f"num_heads {num_heads} does not divide the width {filters}"
            )
        self.filters = filters
        self.num_heads = num_heads
        self.output_dim = output_dim or filters
        self.query = layers.Dense(filters, name="query")
        self.key = layers.Dense(filters, name="key")
        self.value = layers.Dense(filters, name="value")
        self.output_projection = layers.Dense(self.output_dim, name="output")

    def build(self, inputs_shape, bias_shape=None, queries_shape=None):
        for projection in (self.query, self.key, self.value):
            projection.build(inputs_shape)
        self.output_projection.build((*inputs_shape[:-1], self.filters))

    def call(self, inputs, bias=None, queries=None):
        queries = inputs if queries is None else queries
        num_queries = ops.shape(queries)[1]
        head_dim = self.filters // self.num_heads

        def split_heads(tokens):
            length = ops.shape(tokens)[1]
            heads = ops.reshape(tokens, (-1, length, self.num_heads, head_dim))
            return ops.transpose(heads, (0, 2, 1, 3))

        queries = split_heads(self.query(queries)) * head_dim**-0.5
        keys, values = split_heads(self.key(inputs)), split_heads(self.value(inputs))
        logits = ops.matmul(queries, ops.transpose(keys, (0, 1, 3, 2)))
        if bias is not None:
            logits = logits + ops.cast(bias, logits.dtype)
        mixed = ops.matmul(ops.softmax(logits), values)
        mixed = ops.transpose(mixed, (0, 2, 1, 3))
        mixed = ops.reshape(mixed, (-1, num_queries, self.filters))
        return self.output_projection(mixed)

    def compute_output_shape(self, inputs_shape, bias_shape=None, queries_shape=None):
        return *(queries_shape or inputs_shape)[:-1], self.output_dim

    def get_config(self):
        return super().get_config() | {
            "filters": self.filters,
            "num_heads": self.num_heads,
            "output_dim": self.output_dim,
        }
