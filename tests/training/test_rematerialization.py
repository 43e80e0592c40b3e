"""Activations that are computed again leave gradients and statistics as they are."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from basic_tf.models import (
    coatnet,
    description,
    modified_resnet,
    resnet,
    text_transformer,
    zoo,
)
from basic_tf.models.values import values
from basic_tf.training import microbatching, rematerialization
from basic_tf.training.stateless_encoder import StatelessEncoder
from tests.models.model_test_case import randomize_weights

MODES = ("weightless", "block")
BATCH_SIZE = 4


def make_coatnet():
    return coatnet.CoAtNet(
        depths=(2, 1, 2),
        widths=(4, 8, 8),
        strides=(2, 2, 2),
        blocks=("mbconv", "transformer"),
        embedding_dim=6,
        image_size=16,
        head_dim=4,
    )


def make_text():
    return text_transformer.TextTransformer(
        vocabulary_size=10,
        max_length=8,
        num_layers=2,
        width=8,
        num_heads=2,
        embedding_dim=6,
    )


def make_resnet():
    return resnet.ResNet((1, 1), width=4, stem="cifar", image_size=16)


def make_modified_resnet():
    return modified_resnet.ModifiedResNet(
        depths=(1, 1, 1, 1), width=4, embedding_dim=6, num_heads=2, image_size=32
    )


class Dropped(layers.Layer):
    """A block that is random and normalised by the batch."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(6, "gelu", name="dense")
        self.norm = layers.BatchNormalization(name="norm")
        self.dropout = layers.Dropout(0.5, name="dropout")

    def build(self, shape):
        self.dense.build(shape)
        self.norm.build((None, 6))

    def call(self, inputs, training=None):
        x = self.norm(self.dense(inputs), training=training)
        return self.dropout(x, training=training)


def make_random():
    blocks = [Dropped(name="first"), Dropped(name="second"), layers.Dense(3)]
    encoder = keras.Sequential(blocks, name="random")
    encoder.build((None, 5))
    return encoder


def images(size):
    return np.random.default_rng(0).random((BATCH_SIZE, size, size, 3), np.float32)


ENCODERS = {
    "coatnet": (make_coatnet, images(16)),
    "text": (make_text, np.array([[1, 2, 3, 0], [4, 5, 0, 0], [6, 7, 8, 9], [1] * 4])),
    "resnet": (make_resnet, images(16)),
    "modified_resnet": (make_modified_resnet, images(32)),
    "random": (make_random, np.random.default_rng(0).normal(size=(4, 5))),
}


def built(name):
    make, inputs = ENCODERS[name]
    encoder = make()
    inputs = tf.constant(inputs, "int32" if name == "text" else "float32")
    if not encoder.built:
        encoder.build(inputs.shape)
    randomize_weights(encoder)
    return encoder, inputs


def step(encoder, inputs, mode, microbatch_size=0, jit_compile=False, **options):
    """`(gradients, statistics)` of a fixed function of the outputs."""
    stateless = StatelessEncoder(
        lambda inputs, training: tf.cast(encoder(inputs, training=training), "float32"),
        encoder,
        encoder.trainable_variables,
        rematerialization=mode,
        **options,
    )

    @tf.function(jit_compile=jit_compile)
    def run(inputs):
        run = microbatching.encode(stateless, inputs, microbatch_size, 7)
        weights = tf.range(tf.size(run.embeddings), dtype="float32")
        weights = tf.reshape(tf.sin(weights), run.embeddings.shape)
        return run.backward(weights)

    gradients, statistics = run(inputs)
    return [value.numpy() for value in gradients], [v.numpy() for v in statistics]


def assert_equal(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        for value, expected in zip(one, other, strict=True):
            # Biases before a norm, and of keys, have no gradient but rounding.
            scale = max(abs(expected).max(), 0.1)
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ENCODERS)
def test_the_step_is_the_one_that_keeps_everything(name, mode):
    encoder, inputs = built(name)
    assert_equal(step(encoder, inputs, mode), step(encoder, inputs, "none"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["coatnet", "random"])
def test_so_is_a_step_in_microbatches(name, mode):
    encoder, inputs = built(name)
    ours, theirs = (step(encoder, inputs, each, 2) for each in (mode, "none"))
    assert_equal(ours, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_so_is_a_step_with_frozen_batch_norm(mode):
    encoder, inputs = built("coatnet")
    ours, theirs = (
        step(encoder, inputs, each, batch_norm="frozen") for each in (mode, "none")
    )
    assert_equal(ours, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_so_is_a_step_that_xla_compiles(mode):
    encoder, inputs = built("random")
    ours, theirs = (
        step(encoder, inputs, each, jit_compile=True) for each in (mode, "none")
    )
    assert_equal(ours, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_so_is_a_step_in_mixed_precision(mode):
    keras.config.set_dtype_policy("mixed_bfloat16")
    encoder, inputs = built("coatnet")
    ours, theirs = (
        np.concatenate([value.ravel() for value in step(encoder, inputs, each)[0]])
        for each in (mode, "none")
    )
    # TensorFlow fuses, and rounds to 8 bits, in other places.
    assert np.linalg.norm(ours - theirs) < 2e-2 * np.linalg.norm(theirs)


def products_run(mode):
    """How many products with weights the graph runs that is left of a step."""
    encoder, inputs = built("coatnet")
    stateless = StatelessEncoder(
        lambda inputs, training: encoder(inputs, training=training),
        encoder,
        encoder.trainable_variables,
        rematerialization=mode,
    )

    @tf.function
    def run(inputs):
        run = microbatching.encode(stateless, inputs, 0, 0)
        return run.backward(tf.ones_like(run.embeddings))

    graph = run.get_concrete_function(inputs).graph
    needed, ends = set(), [tensor.op for tensor in graph.outputs]
    while ends:
        operation = ends.pop()
        if operation not in needed:
            needed.add(operation)
            ends += [tensor.op for tensor in operation.inputs]
            ends += operation.control_inputs
    kinds = ("Conv2D", "DepthwiseConv2dNative", "MatMul")
    return sum(operation.type in kinds for operation in needed)


def test_no_kept_output_is_computed_twice():
    once, twice = products_run("none"), products_run("block")
    # Of squeeze-and-excitation both convolutions.
    assert products_run("weightless") == once + 2
    assert twice > once + 10


@pytest.mark.parametrize(
    "name",
    ["coatnet_0", "image_vit_b_32", "image_rn50", "resnet50_x1", "text_basic_s"],
)
def test_the_outputs_that_are_kept_are_those_that_are_counted(name):
    size = {"text_basic_s": (64,)}.get(name, (224, 224, 3))
    encoder = description.without_weights(lambda: zoo.encoder(name), size)
    kept = [
        layer
        for block in rematerialization.blocks(encoder)
        for layer in rematerialization.weighted_layers(block)
    ]
    of_blocks = sum(value.weighted for value in values(encoder, size))
    outside = [
        layer
        for layer in encoder._flatten_layers(include_self=False, recursive=False)
        if isinstance(layer, rematerialization.WEIGHTED)
        and layer.name != "position_embedding"  # of no example
    ]
    assert len(kept) + len(outside) == of_blocks


def test_another_mode_is_refused():
    with pytest.raises(ValueError, match="'all' is none of none, weightless, block"):
        rematerialization.stand_ins(make_random(), "all")


def test_batch_norm_over_the_batch_is_refused():
    encoder = make_random()
    with pytest.raises(ValueError, match="batch_norm global needs rematerialization"):
        StatelessEncoder(encoder, encoder, [], 0, "global", "block")
