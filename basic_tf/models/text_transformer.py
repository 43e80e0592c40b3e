"""BASIC's text encoder: a bidirectional transformer, averaged over real tokens."""

import keras
from keras import layers, ops

from basic_tf.models import precision
from basic_tf.models.attention import SelfAttention
from basic_tf.models.feed_forward import feed_forward

PADDING_ID = 0
MASKED = -1e9  # finite, so that a row of padding alone attends evenly and stays finite


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class TransformerBlock(layers.Layer):
    """Pre-norm transformer encoder block.

    `x + Attention(Norm(x))`, then `x + FFN(Norm(x))`.

    Args:
        num_heads: attention heads; must divide the input's width.
        mlp_ratio: hidden width of the feed-forward network over the input's.
        activation: its activation.

    Input and output: `[B, L, C]`; `bias`: added to the attention's logits.

    Raises:
        ValueError: when built, if `num_heads` does not divide C.

    Example:
        >>> TransformerBlock(num_heads=2)(keras.ops.ones((3, 5, 8)), bias=0.0).shape
        TensorShape([3, 5, 8])
    """

    def __init__(self, num_heads, mlp_ratio=4, activation="gelu", **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.mlp_ratio = mlp_ratio
        self.activation = activation

    def build(self, input_shape):
        width = input_shape[-1]
        self.norm = layers.LayerNormalization(epsilon=1e-5, name="norm")
        self.norm.build(input_shape)
        self.attention = SelfAttention(width, self.num_heads, name="attention")
        self.attention.build(input_shape)
        self.feed_forward = feed_forward(width, self.mlp_ratio, self.activation)
        self.feed_forward.build(input_shape)

    def call(self, inputs, bias):
        outputs = inputs + self.attention(self.norm(inputs), bias=bias)
        return outputs + self.feed_forward(outputs)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "mlp_ratio": self.mlp_ratio,
            "activation": self.activation,
        }


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class TextTransformer(keras.Model):
    """Transformer over token ids; the mean of its top layer over the real tokens.

    The embedding does not depend on how far a row is padded (BASIC section 7.1).
    Positions are learned and the top layer is normalised (ours); embeddings start as
    CLIP's do.

    Args:
        vocabulary_size: number of token ids, padding included.
        max_length: longest row; the number of learned positions.
        num_layers: blocks.
        width: width of the transformer.
        num_heads: attention heads of each block.
        embedding_dim: D. Where it is the width, as in BASIC, nothing is added;
            elsewhere a linear projection.
        activation: "gelu" in the paper.

    Input `[B, L]` int with L at most `max_length`, padded with id 0; output `[B, D]`,
    not normalised. A row of padding alone gives a finite embedding.

    Raises:
        ValueError: for rows of more than `max_length`, where their length is known when
            the graph is made; other rows fail when it runs, on a CPU.

    Example:
        >>> encoder = TextTransformer(100, 16, num_layers=1, width=32, num_heads=2,
        ...                           embedding_dim=32)
        >>> encoder(keras.ops.ones((2, 16), "int32")).shape
        TensorShape([2, 32])
    """

    always_projects = False

    def __init__(
        self,
        vocabulary_size,
        max_length,
        num_layers,
        width,
        num_heads,
        embedding_dim,
        activation="gelu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.num_layers = num_layers
        self.width = width
        self.num_heads = num_heads
        self.embedding_dim = embedding_dim
        self.activation = activation
        # Of an initializer each: one would draw both tables from the same numbers.
        self.token_embedding = layers.Embedding(
            vocabulary_size, width, _normal(0.02), name="token_embedding"
        )
        self.position_embedding = layers.Embedding(
            max_length, width, _normal(0.01), name="position_embedding"
        )
        self.blocks = [
            TransformerBlock(num_heads, activation=activation, name=f"block{index}")
            for index in range(num_layers)
        ]
        self.norm = layers.LayerNormalization(epsilon=1e-5, name="norm")
        self.projection = None
        if embedding_dim != width or self.always_projects:
            self.projection = layers.Dense(
                embedding_dim, use_bias=False, name="projection"
            )

    def build(self, input_shape):
        tokens = (None, None, self.width)
        self.token_embedding.build((None, None))
        self.position_embedding.build((None,))
        for block in self.blocks:
            block.build(tokens)
        self.norm.build(tokens)
        if self.projection is not None:
            self.projection.build((None, self.width))

    def call(self, token_ids, training=None):
        # `training` changes nothing here; every encoder takes it.
        length = token_ids.shape[1]
        if length is not None and length > self.max_length:
            raise ValueError(
                f"rows of {length} token ids are longer than max_length "
                f"{self.max_length}; make an encoder of a larger max_length, or drop "
                "the texts"
            )
        positions = ops.arange(ops.shape(token_ids)[1])
        x = self.token_embedding(token_ids) + self.position_embedding(positions)
        bias = self.attention_bias(token_ids)
        for block in self.blocks:
            x = block(x, bias=bias)
        x = self.pool(self.norm(x), token_ids)
        return x if self.projection is None else self.projection(x)

    def attention_bias(self, token_ids):
        """What is added to the logits of every block: no position sees padding."""
        is_token = ops.not_equal(token_ids, PADDING_ID)
        return ops.where(is_token, 0.0, MASKED)[:, None, None, :]

    def pool(self, values, token_ids):
        """`[B, L, C]` values of the top layer, normalised -> `[B, C]`."""
        return masked_mean(values, ops.not_equal(token_ids, PADDING_ID))

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.embedding_dim

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "max_length": self.max_length,
            "num_layers": self.num_layers,
            "width": self.width,
            "num_heads": self.num_heads,
            "embedding_dim": self.embedding_dim,
            "activation": self.activation,
        }


def _normal(stddev):
    return keras.initializers.RandomNormal(stddev=stddev)


def masked_mean(values, is_token):
    """Mean of `[B, L, C]` values over the positions where `[B, L]` is true.

    Returns:
        `[B, C]`; zeros for a row without a token.
    """
    weights = ops.expand_dims(ops.cast(is_token, values.dtype), -1)
    count = ops.maximum(ops.sum(weights, axis=1), 1)
    return ops.sum(values * weights, axis=1) / count
