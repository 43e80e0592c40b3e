"""Relative attention and the transformer block of CoAtNet."""

import keras
import numpy as np
from keras import layers, ops

from basic_tf.models import precision
from basic_tf.models.attention import SelfAttention
from basic_tf.models.feed_forward import feed_forward
from basic_tf.models.residual import ResidualBlock


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class RelativeAttention(layers.Layer):
    """Self-attention over positions with a learned bias per relative offset.

    `softmax(Q K^T / sqrt(d) + bias)` where the bias of a pair of positions is read from
    a table `[heads, 2H - 1, 2W - 1]` by their offset and does not depend on the input
    (CoAtNet eq. 3).

    Args:
        filters: width of the output.
        head_dim: width of a head; must divide `filters`.

    Input `[B, H, W, C]` with fixed H and W, output `[B, H, W, filters]`.

    Raises:
        ValueError: if `head_dim` does not divide `filters`.

    Example:
        >>> RelativeAttention(64)(keras.ops.ones((3, 4, 4, 32))).shape
        TensorShape([3, 4, 4, 64])
    """

    def __init__(self, filters, head_dim=32, **kwargs):
        super().__init__(**kwargs)
        if head_dim < 1 or filters % head_dim:
            raise ValueError(f"head_dim {head_dim} does not divide filters {filters}")
        self.filters = filters
        self.head_dim = head_dim
        self.num_heads = filters // head_dim
        self.attention = SelfAttention(filters, self.num_heads, name="attention")

    def build(self, input_shape):
        _, height, width, channels = input_shape
        self.attention.build((None, height * width, channels))
        self.relative_bias = self.add_weight(
            name="relative_bias",
            shape=(self.num_heads, 2 * height - 1, 2 * width - 1),
            initializer=keras.initializers.TruncatedNormal(stddev=0.02),
        )
        self.offsets = relative_offsets(height, width)

    def call(self, inputs):
        _, height, width, channels = inputs.shape
        tokens = ops.reshape(inputs, (-1, height * width, channels))
        table = ops.reshape(self.relative_bias, (self.num_heads, -1))
        bias = ops.expand_dims(ops.take(table, self.offsets, axis=1), 0)
        outputs = self.attention(tokens, bias=bias)
        return ops.reshape(outputs, (-1, height, width, self.filters))

    def get_config(self):
        return super().get_config() | {
            "filters": self.filters,
            "head_dim": self.head_dim,
        }


def relative_offsets(height, width):
    """Index of each pair of positions in a flattened relative table.

    Returns:
        `[H * W, H * W]` int32: entry `[i, j]` is `(yi - yj + H - 1) * (2W - 1)
        + (xi - xj + W - 1)`.
    """
    rows, columns = np.divmod(np.arange(height * width), width)
    row_offset = rows[:, None] - rows[None, :] + height - 1
    column_offset = columns[:, None] - columns[None, :] + width - 1
    return (row_offset * (2 * width - 1) + column_offset).astype("int32")


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class RelativeTransformerBlock(ResidualBlock):
    """`x + Attention(Norm(x))`, then `x + FFN(Norm(x))` (CoAtNet A.1).

    With a stride, attention sees `Pool(Norm(x))` and is added to the shortcut.

    Args:
        filters: output width.
        strides: 1 or 2.
        head_dim: width of an attention head.
        mlp_ratio: hidden width of the feed-forward network over `filters`.
        activation: its activation.
        pooling: see `ResidualBlock`; of the norm, too.
        layer_norm_epsilon: of both norms.

    Input `[B, H, W, C]`, output `[B, ceil(H / strides), ceil(W / strides), filters]`.

    Example:
        >>> RelativeTransformerBlock(64, strides=2)(keras.ops.ones((3, 8, 8, 32))).shape
        TensorShape([3, 4, 4, 64])
    """

    def __init__(
        self,
        filters,
        strides=1,
        head_dim=32,
        mlp_ratio=4,
        activation="gelu",
        pooling="max",
        layer_norm_epsilon=1e-5,
        **kwargs,
    ):
        super().__init__(filters, strides, pooling, **kwargs)
        self.head_dim = head_dim
        self.mlp_ratio = mlp_ratio
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon

    def build(self, input_shape):
        self.build_shortcut(input_shape)
        output_shape = self.compute_output_shape(input_shape)
        self.norm = layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, name="norm"
        )
        self.norm.build(input_shape)
        self.attention = RelativeAttention(
            self.filters, self.head_dim, name="attention"
        )
        self.attention.build((*output_shape[:3], input_shape[-1]))
        self.feed_forward = feed_forward(
            self.filters, self.mlp_ratio, self.activation, self.layer_norm_epsilon
        )
        self.feed_forward.build(output_shape)

    def call(self, inputs):
        normed = self.norm(inputs)
        if self.pool is not None:
            normed = self.pool(normed)
        outputs = self.shortcut(inputs) + self.attention(normed)
        return outputs + self.feed_forward(outputs)

    def get_config(self):
        return super().get_config() | {
            "head_dim": self.head_dim,
            "mlp_ratio": self.mlp_ratio,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
