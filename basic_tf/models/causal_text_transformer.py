"""CLIP's text encoder: a causal transformer, read at the end-of-text token."""

import keras
from keras import ops

from basic_tf.models.text_transformer import MASKED, TextTransformer


@keras.saving.register_keras_serializable("basic_tf")
class CausalTextTransformer(TextTransformer):
    """Transformer whose positions see only those before them (CLIP section 2.4).

    The feature is the top layer at the first position of the highest id of the row,
    which is the end-of-text token of CLIP's vocabulary, and is always projected.
    Padding stands behind that token, so that nothing of it is seen.

    Args: those of `TextTransformer`.

    Input `[B, L]` int with L at most `max_length`, padded with id 0; output `[B, D]`,
    not normalised. A row of padding alone gives a finite embedding.

    Raises:
        ValueError: as `TextTransformer`.

    Example:
        >>> encoder = CausalTextTransformer(100, 16, num_layers=1, width=32,
        ...                                 num_heads=2, embedding_dim=32)
        >>> encoder(keras.ops.ones((2, 16), "int32")).shape
        TensorShape([2, 32])
    """

    always_projects = True

    def attention_bias(self, token_ids):
        positions = ops.arange(ops.shape(token_ids)[1])
        is_before = positions[None, :] <= positions[:, None]
        return ops.where(is_before, 0.0, MASKED)

    def pool(self, values, token_ids):
        # A product, not a gather, whose gradient a TPU would have to scatter.
        is_end = ops.one_hot(
            ops.argmax(token_ids, axis=-1), ops.shape(token_ids)[1], dtype=values.dtype
        )
        return ops.squeeze(ops.matmul(is_end[:, None, :], values), axis=1)
