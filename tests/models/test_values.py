"""The values of blocks: written out by hand, and as TensorFlow's graph has them."""

import keras
import numpy as np
import pytest

from basic_tf.models import (
    causal_text_transformer,
    coatnet,
    description,
    modified_resnet,
    resnet,
    text_transformer,
    timm_configurations,
    values,
    vision_transformer,
)
from basic_tf.models.mbconv import MBConv
from basic_tf.models.relative_attention import RelativeTransformerBlock
from tests.models import counted_graph
from tests.models.model_test_case import random_images


def small_coatnet():
    return coatnet.CoAtNet(
        depths=(2, 2, 2),
        widths=(4, 8, 12),
        strides=(2, 2, 2),
        blocks=("mbconv", "transformer"),
        embedding_dim=10,
        image_size=16,
        head_dim=4,
        expansion_base="output",
    )


def small_timm_coatnet():
    return coatnet.CoAtNet(
        **timm_configurations.DEFINITION,
        depths=(2, 2, 1, 2, 1),
        widths=(4, 4, 8, 8, 12),
        blocks=("mbconv", "mbconv", "transformer", "transformer"),
        embedding_dim=10,
        image_size=64,
        head_dim=4,
        head=("mean", "norm", "tanh"),
    )


def small_text_transformer():
    return text_transformer.TextTransformer(
        50, max_length=6, num_layers=2, width=8, num_heads=2, embedding_dim=5
    )


def small_resnet():
    return resnet.ResNet((1, 2), width=4, image_size=16)


def small_vision_transformer():
    return vision_transformer.VisionTransformer(
        4, num_layers=2, width=8, num_heads=2, embedding_dim=5, image_size=16
    )


def small_modified_resnet():
    return modified_resnet.ModifiedResNet(
        (1, 2, 1, 1), width=4, num_heads=2, embedding_dim=5, image_size=64
    )


def small_causal_text_transformer():
    return causal_text_transformer.CausalTextTransformer(
        50, max_length=6, num_layers=2, width=8, num_heads=2, embedding_dim=5
    )


ENCODERS = {
    "coatnet": (small_coatnet, random_images(1, 16, 16, 3)),
    "timm_coatnet": (small_timm_coatnet, random_images(1, 64, 64, 3)),
    "resnet": (small_resnet, random_images(1, 16, 16, 3)),
    "text": (small_text_transformer, np.ones((1, 6), "int32")),
    "vision_transformer": (small_vision_transformer, random_images(1, 16, 16, 3)),
    "modified_resnet": (small_modified_resnet, random_images(1, 64, 64, 3)),
    "causal_text": (small_causal_text_transformer, np.ones((1, 6), "int32")),
}


def values_of(make, example):
    shape = example.shape[1:]
    return list(values.values(description.without_weights(make, shape), shape))


@pytest.mark.parametrize("name", ENCODERS)
def test_multiply_adds_are_those_of_the_profiler(name):
    graph = counted_graph.graph_of(*ENCODERS[name])
    counted = sum(value.multiply_adds for value in values_of(*ENCODERS[name]))
    assert counted == counted_graph.multiply_adds(graph) > 1000


@pytest.mark.parametrize("name", ENCODERS)
def test_weighted_values_are_the_graphs_products_with_weights(name):
    graph = counted_graph.graph_of(*ENCODERS[name])
    made = values_of(*ENCODERS[name])
    products = [value.size for value in made if value.weighted and value.multiply_adds]
    assert sum(products) == counted_graph.products_with_weights(graph) > 100


@pytest.mark.parametrize("name", ENCODERS)
def test_the_last_value_is_the_output_and_every_value_has_its_name(name):
    make, example = ENCODERS[name]
    made = values_of(make, example)
    assert made[-1].shape == make()(example).shape[1:]
    names = [value.name for value in made]
    assert len(set(names)) == len(names)


def weighted(*shape):
    return shape, True


def weightless(*shape):
    return shape, False


def assert_values(make, shape, expected):
    block = description.without_weights(make, shape)
    made = values.values(block, shape)
    assert {value.name: (value.shape, value.weighted) for value in made} == expected


def test_mbconv_keeps_its_convolutions_outside_of_squeeze_and_excitation():
    expected = {
        "pool": weightless(3, 3, 4),
        "shortcut": weighted(3, 3, 8),
        "norm": weightless(6, 6, 4),
        "expand": weighted(3, 3, 16),
        "expand_norm": weightless(3, 3, 16),
        "expand_activation": weightless(3, 3, 16),
        "depthwise": weighted(3, 3, 16),
        "depthwise_norm": weightless(3, 3, 16),
        "depthwise_activation": weightless(3, 3, 16),
        "se/mean": weightless(1, 1, 16),
        "se/reduce": weightless(1, 1, 1),
        "se/reduce_activation": weightless(1, 1, 1),
        "se/expand": weightless(1, 1, 16),
        "se/expand_activation": weightless(1, 1, 16),
        "se/scaled": weightless(3, 3, 16),
        "project": weighted(3, 3, 8),
    }
    assert_values(lambda: MBConv(8, strides=2), (6, 6, 4), expected)


def test_a_transformer_block_keeps_its_projections():
    expected = {
        "pool": weightless(2, 3, 4),
        "shortcut": weighted(2, 3, 8),
        "norm": weightless(4, 6, 4),
        "pooled_norm": weightless(2, 3, 4),
        "attention/query": weighted(6, 8),
        "attention/key": weighted(6, 8),
        "attention/value": weighted(6, 8),
        "attention/weights": weightless(2, 6, 6),
        "attention/mixed": weightless(6, 8),
        "attention/output": weighted(2, 3, 8),
        "feed_forward/norm": weightless(2, 3, 8),
        "feed_forward/expand": weighted(2, 3, 32),
        "feed_forward/expand_activation": weightless(2, 3, 32),
        "feed_forward/project": weighted(2, 3, 8),
    }
    assert_values(
        lambda: RelativeTransformerBlock(8, strides=2, head_dim=4), (4, 6, 4), expected
    )


def test_a_text_transformer_keeps_its_token_embeddings():
    made = {value.name: value for value in values_of(*ENCODERS["text"])}
    embedding = values.Value("token_embedding", (6, 8), weighted=True)
    assert made["token_embedding"] == embedding


def test_a_layer_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="the values of a Dropout are not known"):
        values.values(keras.layers.Dropout(0.1), (3,))
