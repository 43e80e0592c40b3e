"""KerasHub's encoder layer agrees; padding changes nothing; loops give the means."""

import hypothesis
import keras_hub
import numpy as np
import pytest
from hypothesis import strategies

from basic_tf.models import text_transformer
from tests.models.model_test_case import (
    ModelTestCase,
    random_images,
    randomize_weights,
)

TINY = {
    "vocabulary_size": 30,
    "max_length": 16,
    "num_layers": 2,
    "width": 16,
    "num_heads": 2,
    "embedding_dim": 16,
}
CAPTIONS = ((3, 9, 4, 1), (7, 1), (29, 2, 2, 5, 1))


def padded(captions, length):
    rows = [[*caption, *[0] * (length - len(caption))] for caption in captions]
    return np.array(rows, "int32")


def encoder(**changes):
    model = text_transformer.TextTransformer(**TINY | changes)
    model.build((None, None))
    randomize_weights(model)
    return model


class TestTransformerBlock(ModelTestCase):
    arguments = (random_images(2, 5, 8), random_images(2, 1, 1, 5))
    output_shapes = ((2, 5, 8),)

    def make(self):
        return text_transformer.TransformerBlock(num_heads=2, mlp_ratio=3)


class TestTextTransformer(ModelTestCase):
    arguments = (padded(CAPTIONS, 9),)
    output_shapes = ((3, 12),)

    def make(self):
        options = TINY | {"embedding_dim": 12, "activation": "relu"}
        return text_transformer.TextTransformer(**options)


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_a_block_equals_the_encoder_layer_of_keras_hub(activation):
    inputs = np.random.default_rng(1).normal(size=(3, 6, 8)).astype("float32")
    is_token = np.arange(6) < np.array([6, 2, 4])[:, None]
    block = text_transformer.TransformerBlock(2, activation=activation)
    block.build(inputs.shape)
    randomize_weights(block)
    peer = keras_hub.layers.TransformerEncoder(
        32, 2, activation=activation, normalize_first=True
    )
    peer.build(inputs.shape)
    copy_weights(block, peer)
    expected = peer(inputs, padding_mask=is_token)
    bias = np.where(is_token, 0, text_transformer.MASKED)[:, None, None]
    actual = block(inputs, bias.astype("float32"))
    # Sums of 32 float32 products in another order.
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def copy_weights(block, peer):
    """From a block to KerasHub's, whose kernels have an axis for the heads."""
    layers = [
        *(block.attention.query, block.attention.key, block.attention.value),
        block.attention.output_projection,
        block.norm,
        *block.feed_forward.layers,
    ]
    weights = [weight for layer in layers for weight in layer.get_weights()]
    shapes = [tuple(weight.shape) for weight in peer.weights]
    peer.set_weights(
        [w.reshape(shape) for w, shape in zip(weights, shapes, strict=True)]
    )


def test_positions_start_as_other_numbers_than_tokens():
    model = text_transformer.TextTransformer(**TINY)
    model.build((None, None))
    tokens, positions = (
        layer.get_weights()[0][: TINY["max_length"]].ravel()
        for layer in (model.token_embedding, model.position_embedding)
    )
    assert abs(np.corrcoef(tokens, positions)[0, 1]) < 0.3  # of 256 pairs


def test_rows_longer_than_the_positions_are_refused():
    message = "rows of 17 token ids are longer than max_length 16; make an encoder"
    with pytest.raises(ValueError, match=message):
        encoder()(np.ones((2, 17), "int32"))


@pytest.mark.parametrize("changes", [{}, {"embedding_dim": 12}])
def test_an_embedding_does_not_depend_on_the_padding(changes):
    model = encoder(**changes)
    expected = model(padded(CAPTIONS, 5))
    for length in (9, 16):
        actual = model(padded(CAPTIONS, length))
        # The masked terms are exactly 0; sums of other lengths round differently.
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_row_of_padding_alone_is_finite_and_leaves_the_others_alone():
    model = encoder()
    outputs = model(padded([(), *CAPTIONS], 9))
    assert np.all(np.isfinite(outputs))
    expected = model(padded(CAPTIONS, 9))
    np.testing.assert_allclose(outputs[1:], expected, rtol=1e-5, atol=1e-6)


def test_the_order_of_the_tokens_matters():
    one, other = encoder()(padded([(3, 4, 5, 1), (5, 4, 3, 1)], 8))
    assert np.abs(one - other).max() > 0.01


def test_every_token_sees_every_other():
    """Bidirectional: the last token changes what the first position becomes."""
    model = encoder(num_layers=1)
    one, other = padded([(3, 4, 5), (3, 4, 6)], 3)
    block_inputs = model.token_embedding(np.stack([one, other]))
    block_inputs += model.position_embedding(np.arange(3))
    first = model.blocks[0](block_inputs, np.zeros((2, 1, 1, 3), "float32"))[:, 0]
    assert np.abs(first[0] - first[1]).max() > 1e-4


def test_no_layers_leave_the_mean_of_the_normed_embeddings():
    model = encoder(num_layers=0)
    tokens, positions = (
        layer.get_weights()[0].astype("float64")
        for layer in (model.token_embedding, model.position_embedding)
    )
    gamma, beta = model.norm.get_weights()
    for caption, actual in zip(CAPTIONS, model(padded(CAPTIONS, 9)), strict=True):
        x = tokens[list(caption)] + positions[: len(caption)]
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        expected = (x * gamma + beta).mean(0)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


@hypothesis.given(
    strategies.integers(1, 5), strategies.integers(1, 6), strategies.integers(0, 99)
)
def test_masked_mean_agrees_with_a_loop(batch_size, length, seed):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(batch_size, length, 3))
    is_token = generator.random((batch_size, length)) < 0.5
    actual = text_transformer.masked_mean(values, is_token)
    for row, mask, mean in zip(values, is_token, actual, strict=True):
        expected = row[mask].mean(0) if mask.any() else np.zeros(3)
        np.testing.assert_allclose(mean, expected, rtol=1e-12, atol=1e-14)


def test_a_width_without_projection_adds_no_weights():
    paths = {variable.path for variable in encoder().variables}
    assert not [path for path in paths if "projection" in path]
    assert len(paths) == len(encoder().variables)
