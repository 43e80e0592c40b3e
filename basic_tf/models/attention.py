"""Multi-head self-attention with an additive bias, for images and text."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("basic_tf")
class SelfAttention(layers.Layer):
    """`softmax(Q K^T / sqrt(d) + bias) V`, projected (Vaswani et al. 2017).

    Built of plain `Dense` layers: on CPUs the `EinsumDense` of
    `keras.layers.MultiHeadAttention` takes several times as long.

    Args:
        filters: width of the output and of all heads together.
        num_heads: must divide `filters`.

    Input `[B, L, C]`; `bias` broadcastable to `[B, heads, L, L]`, added to the logits.
    Output `[B, L, filters]`.

    Raises:
        ValueError: if `num_heads` does not divide `filters`.

    Example:
        >>> SelfAttention(64, num_heads=2)(keras.ops.ones((3, 16, 32))).shape
        TensorShape([3, 16, 64])
    """

    def __init__(self, filters, num_heads, **kwargs):
        super().__init__(**kwargs)
        if num_heads < 1 or filters % num_heads:
            raise ValueError(
                f"num_heads {num_heads} does not divide the width {filters}"
            )
        self.filters = filters
        self.num_heads = num_heads
        self.query = layers.Dense(filters, name="query")
        self.key = layers.Dense(filters, name="key")
        self.value = layers.Dense(filters, name="value")
        self.output_projection = layers.Dense(filters, name="output")

    def build(self, input_shape):
        for projection in (self.query, self.key, self.value):
            projection.build(input_shape)
        self.output_projection.build((*input_shape[:-1], self.filters))

    def call(self, inputs, bias=None):
        length = ops.shape(inputs)[1]
        head_dim = self.filters // self.num_heads

        def split_heads(tokens):
            heads = ops.reshape(tokens, (-1, length, self.num_heads, head_dim))
            return ops.transpose(heads, (0, 2, 1, 3))

        queries = split_heads(self.query(inputs)) * head_dim**-0.5
        keys, values = split_heads(self.key(inputs)), split_heads(self.value(inputs))
        logits = ops.matmul(queries, ops.transpose(keys, (0, 1, 3, 2)))
        if bias is not None:
            logits = logits + ops.cast(bias, logits.dtype)
        mixed = ops.matmul(ops.softmax(logits), values)
        mixed = ops.transpose(mixed, (0, 2, 1, 3))
        return self.output_projection(ops.reshape(mixed, (-1, length, self.filters)))

    def compute_output_shape(self, input_shape):
        return *input_shape[:-1], self.filters

    def get_config(self):
        return super().get_config() | {
            "filters": self.filters,
            "num_heads": self.num_heads,
        }
