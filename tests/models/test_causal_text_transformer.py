"""Keras's causal attention agrees; nothing behind the end of a text is seen."""

import keras
import numpy as np

from basic_tf.models import causal_text_transformer
from tests.models.model_test_case import ModelTestCase, randomize_weights

TINY = {
    "vocabulary_size": 30,
    "max_length": 9,
    "num_layers": 2,
    "width": 16,
    "num_heads": 2,
    "embedding_dim": 16,
}
END = 29
CAPTIONS = ((3, 9, 4, END), (7, END), (28, 2, 2, 5, END))


def padded(captions, length):
    rows = [[*caption, *[0] * (length - len(caption))] for caption in captions]
    return np.array(rows, "int32")


def encoder(**changes):
    model = causal_text_transformer.CausalTextTransformer(**TINY | changes)
    model.build((None, None))
    randomize_weights(model)
    return model


class TestCausalTextTransformer(ModelTestCase):
    arguments = (padded(CAPTIONS, 9),)
    output_shapes = ((3, 12),)

    def make(self):
        options = TINY | {"embedding_dim": 12, "activation": "quick_gelu"}
        return causal_text_transformer.CausalTextTransformer(**options)


def test_the_mask_is_the_causal_mask_of_keras():
    model = encoder(num_layers=1)
    block = model.blocks[0]
    inputs = np.random.default_rng(1).normal(size=(2, 5, 16)).astype("float32")
    attention = block.attention
    peer = keras.layers.MultiHeadAttention(2, 8)
    peer.build(inputs.shape, inputs.shape)
    projections = (
        *(attention.query, attention.key, attention.value),
        attention.output_projection,
    )
    values = [weight for layer in projections for weight in layer.get_weights()]
    peer.set_weights(
        [
            value.reshape(weight.shape)
            for value, weight in zip(values, peer.weights, strict=True)
        ]
    )
    bias = model.attention_bias(np.ones((2, 5), "int32"))
    expected = peer(inputs, inputs, use_causal_mask=True)
    actual = attention(inputs, bias=bias)
    # Sums of a dozen float32 products in another order.
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_nothing_behind_the_end_is_seen():
    model = encoder()
    expected = model(padded(CAPTIONS, 5))
    for length in (7, 9):
        rows = padded(CAPTIONS, length)
        filled = np.where((rows == 0) & (np.arange(length) >= 5), 11, rows)
        for token_ids in (rows, filled):
            # The masked terms are exactly 0; sums of other lengths round differently.
            np.testing.assert_allclose(model(token_ids), expected, rtol=1e-5, atol=1e-6)


def test_the_first_of_several_ends_counts():
    model = encoder()
    one, other = model(padded([(3, END, 4, END), (3, END)], 6))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_every_token_before_the_end_counts():
    model = encoder()
    expected = model(padded([(3, 4, 5, END)], 4))
    for changed in ((1, 4, 5, END), (3, 1, 5, END), (3, 4, 1, END)):
        assert np.abs(model(padded([changed], 4)) - expected).max() > 1e-3


def test_a_row_of_padding_alone_is_finite():
    assert np.all(np.isfinite(encoder()(padded([(), *CAPTIONS], 9))))


def test_no_layers_leave_the_projected_norm_of_the_end_token():
    model = encoder(num_layers=0)
    tokens, positions = (
        layer.get_weights()[0].astype("float64")
        for layer in (model.token_embedding, model.position_embedding)
    )
    gamma, beta = model.norm.get_weights()
    (projection,) = model.projection.get_weights()
    for caption, actual in zip(CAPTIONS, model(padded(CAPTIONS, 9)), strict=True):
        x = tokens[END] + positions[len(caption) - 1]
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-5) * gamma + beta
        np.testing.assert_allclose(actual, x @ projection, rtol=1e-4, atol=1e-5)
