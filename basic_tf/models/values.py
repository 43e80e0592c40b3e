"""The values that a forward pass makes, layer by layer, and what they cost.

The one place that says which values are outputs of layers with weights. BASIC's
rematerialization (section 5) keeps those and computes the others again: norms,
activations, and all of squeeze-and-excitation, its convolutions included.
"""

import dataclasses
import functools
import math

import keras
from keras import layers

from basic_tf.models.attention import SelfAttention
from basic_tf.models.causal_text_transformer import CausalTextTransformer
from basic_tf.models.coatnet import CoAtNet
from basic_tf.models.mbconv import MBConv, SqueezeExcitation
from basic_tf.models.modified_resnet import AttentionPooling, ModifiedResNet
from basic_tf.models.post_activation import PostActivationBlock
from basic_tf.models.relative_attention import (
    RelativeAttention,
    RelativeTransformerBlock,
)
from basic_tf.models.resnet import ResNet
from basic_tf.models.text_transformer import TextTransformer, TransformerBlock
from basic_tf.models.vision_transformer import VisionTransformer


@dataclasses.dataclass(frozen=True)
class Value:
    """One value of the forward pass of one example.

    A sum has no value of its own: it takes the place of the branch that it closes.

    Attributes:
        name: of the layer, below those of the layers around it.
        shape: without the batch.
        weighted: whether it is kept as the output of a layer with weights.
        multiply_adds: of the products with weights, and of attention, that make it.
    """

    name: str
    shape: tuple
    weighted: bool = False
    multiply_adds: int = 0

    @property
    def size(self):
        return math.prod(self.shape)


@functools.singledispatch
def values(layer, shape):
    """What a layer makes, in order; the last value has its output's shape.

    Args:
        layer: built, with or without weights (`description.without_weights`).
        shape: of its input, without the batch.

    Returns:
        Iterator of `Value`.

    Raises:
        ValueError: for a class that has no function here.
    """
    raise ValueError(f"the values of a {type(layer).__name__} are not known")


def _within(layer, shape):
    """The values of a layer, named below it."""
    for value in values(layer, shape):
        yield dataclasses.replace(value, name=f"{layer.name}/{value.name}")


def _chain(members, shape, of_layer=values):
    """The values of layers, each of which takes the output of the one before."""
    for layer in members:
        for value in of_layer(layer, shape):
            yield value
        shape = value.shape


def _product(layer, shape, multiply_adds):
    """The output of a layer with weights, and that of its activation."""
    yield Value(layer.name, shape, weighted=True, multiply_adds=multiply_adds)
    if layer.activation is not keras.activations.linear:
        yield Value(f"{layer.name}_activation", shape)


def _output_shape(layer, shape):
    return tuple(layer.compute_output_shape((None, *shape))[1:])


@values.register(layers.Conv2D)
def _(layer, shape):
    output = _output_shape(layer, shape)
    terms = math.prod(layer.kernel_size) * shape[-1]
    yield from _product(layer, output, math.prod(output) * terms)


@values.register(layers.DepthwiseConv2D)
def _(layer, shape):
    output = _output_shape(layer, shape)
    terms = math.prod(layer.kernel_size)
    yield from _product(layer, output, math.prod(output) * terms)


@values.register(layers.Dense)
def _(layer, shape):
    yield from _product(
        layer, (*shape[:-1], layer.units), math.prod(shape) * layer.units
    )


@values.register(layers.Embedding)
def _(layer, shape):
    yield Value(layer.name, (*shape, layer.output_dim), weighted=True)


@values.register(layers.Activation)
@values.register(layers.AveragePooling2D)
@values.register(layers.BatchNormalization)
@values.register(layers.GlobalAveragePooling2D)
@values.register(layers.LayerNormalization)
@values.register(layers.MaxPooling2D)
@values.register(layers.ReLU)
@values.register(layers.ZeroPadding2D)
def _(layer, shape):
    yield Value(layer.name, _output_shape(layer, shape))


@values.register(keras.Sequential)
def _(layer, shape):
    yield from _chain(layer.layers, shape)


@values.register(SqueezeExcitation)
def _(layer, shape):
    mean = Value(f"{layer.name}/mean", (1, 1, shape[-1]))
    yield mean
    for value in _chain((layer.reduce, layer.expand), mean.shape):
        name = f"{layer.name}/{value.name}"
        yield dataclasses.replace(value, name=name, weighted=False)
    yield Value(f"{layer.name}/scaled", shape)


def _shortcut(block, shape):
    """Of a `ResidualBlock`; nothing where it is the identity."""
    yield from _chain([part for part in (block.pool, block.project) if part], shape)


@values.register(MBConv)
def _(block, shape):
    yield from _shortcut(block, shape)
    yield from _chain(block.block.layers, shape)


@values.register(SelfAttention)
def _(layer, shape):
    yield from _attention(layer, shape, num_queries=shape[0])


def _attention(layer, shape, num_queries):
    length, width = shape
    cost = num_queries * length * layer.filters
    yield from values(layer.query, (num_queries, width))
    for projection in (layer.key, layer.value):
        yield from values(projection, shape)
    # The softmax; its backward pass does not look at the logits.
    weights = layer.num_heads, num_queries, length
    yield Value("weights", weights, multiply_adds=cost)
    output = num_queries, layer.filters
    yield Value("mixed", output, multiply_adds=cost)
    yield from values(layer.output_projection, output)


@values.register(RelativeAttention)
def _(layer, shape):
    height, width, channels = shape
    *inner, output = values(layer.attention, (height * width, channels))
    yield from inner
    yield dataclasses.replace(output, shape=(height, width, layer.filters))


@values.register(RelativeTransformerBlock)
def _(block, shape):
    output = _output_shape(block, shape)
    pooled = *output[:2], shape[-1]
    yield from _shortcut(block, shape)
    yield from values(block.norm, shape)
    if block.pool is not None:
        yield Value("pooled_norm", pooled)
    yield from _within(block.attention, pooled)
    yield from _within(block.feed_forward, output)


@values.register(CoAtNet)
def _(encoder, shape):
    yield Value("scaled_image", shape)
    yield from _chain([*encoder.stages, encoder.head], shape, _within)


@values.register(PostActivationBlock)
def _(block, shape):
    if block.shortcut is not None:
        yield from _within(block.shortcut, shape)
    yield from values(block.residual, shape)
    yield Value("activation", _output_shape(block, shape))


@values.register(ResNet)
def _(encoder, shape):
    yield from _chain(encoder.stages, shape, _within)
    yield Value(encoder.pool.name, (encoder.embedding_dim,))


@values.register(AttentionPooling)
def _(layer, shape):
    height, width, channels = shape
    tokens = height * width + 1, channels
    yield Value("tokens", tokens)
    *inner, output = _attention(layer.attention, tokens, num_queries=1)
    yield from inner
    yield dataclasses.replace(output, shape=(layer.embedding_dim,))


@values.register(ModifiedResNet)
def _(encoder, shape):
    yield Value("normalized_image", shape)
    parts = [encoder.stem, *encoder.blocks, encoder.pooling]
    yield from _chain(parts, shape, _within)


@values.register(TransformerBlock)
def _(block, shape):
    yield from values(block.norm, shape)
    yield from _within(block.attention, shape)
    yield from _within(block.feed_forward, shape)


@values.register(VisionTransformer)
def _(encoder, shape):
    yield Value("normalized_image", shape)
    yield from values(encoder.patch_embedding, shape)
    tokens = encoder.num_patches + 1, encoder.width
    yield Value("tokens", tokens)
    yield from values(encoder.pre_norm, tokens)
    yield from _chain([*encoder.blocks], tokens, _within)
    yield from _chain([encoder.norm, encoder.projection], (encoder.width,))


@values.register(TextTransformer)
def _(encoder, shape):
    yield from _text_transformer(encoder, shape, Value("mean", (encoder.width,)))


@values.register(CausalTextTransformer)
def _(encoder, shape):
    cost = math.prod(shape) * encoder.width  # of a product with one row of ones
    end = Value("end_of_text", (encoder.width,), multiply_adds=cost)
    yield from _text_transformer(encoder, shape, end)


def _text_transformer(encoder, shape, pooled):
    yield from values(encoder.token_embedding, shape)
    tokens = *shape, encoder.width
    yield from _chain([*encoder.blocks], tokens, _within)
    yield from values(encoder.norm, tokens)
    yield pooled
    if encoder.projection is not None:
        yield from values(encoder.projection, (encoder.width,))
