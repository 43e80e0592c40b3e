"""Float64 loops for the block and the pooling; a peer's weights in test_weights."""

import numpy as np
import pytest
import scipy.special

from basic_tf.models import modified_resnet
from tests.models.model_test_case import ModelTestCase, random_images, randomize_weights
from tests.models.numpy_layers import assert_agrees, relu, weights, windows

TINY = {
    "depths": (1, 2, 1, 1),
    "width": 4,
    "num_heads": 2,
    "embedding_dim": 6,
    "image_size": 32,
}


class TestBottleneck(ModelTestCase):
    arguments = (random_images(2, 4, 4, 8),)
    output_shapes = ((2, 2, 2, 12),)

    def make(self):
        return modified_resnet.Bottleneck(3, strides=2)


class TestBottleneckWithoutStride(ModelTestCase):
    arguments = (random_images(2, 4, 4, 12),)
    output_shapes = ((2, 4, 4, 12),)

    def make(self):
        return modified_resnet.Bottleneck(3)


class TestAttentionPooling(ModelTestCase):
    arguments = (random_images(2, 3, 2, 8),)
    output_shapes = ((2, 6),)

    def make(self):
        return modified_resnet.AttentionPooling(2, embedding_dim=6)


class TestModifiedResNet(ModelTestCase):
    arguments = (random_images(16, 32, 32, 3),)
    output_shapes = ((16, 6),)
    # One position is left in the last stage: its batch statistics are of 16 values.
    mixed_error = 0.1

    def make(self):
        return modified_resnet.ModifiedResNet(**TINY)


def batch_norm(layer, x):
    gamma, beta, mean, variance = weights(layer)
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def pool(x, strides):
    return windows(x, strides, strides, 0).mean((3, 4))


def bottleneck(block, x):
    conv1, norm1, _, conv2, norm2, *_, conv3, norm3 = block.residual.layers
    (kernel1,), (kernel2,), (kernel3,) = map(weights, (conv1, conv2, conv3))
    residual = relu(batch_norm(norm1, x @ kernel1[0, 0]))
    residual = np.einsum("byxhwi,hwio->byxo", windows(residual, 3, 1, 0), kernel2)
    residual = pool(relu(batch_norm(norm2, residual)), block.strides)
    residual = batch_norm(norm3, residual @ kernel3[0, 0])
    if block.shortcut is not None:
        *_, conv, norm = block.shortcut.layers
        x = batch_norm(norm, pool(x, block.strides) @ weights(conv)[0][0, 0])
    return relu(x + residual)


@pytest.mark.parametrize(
    ("strides", "channels", "shortcut"), [(1, 12, False), (1, 8, True), (2, 12, True)]
)
def test_a_bottleneck_agrees_with_a_loop(strides, channels, shortcut):
    block = modified_resnet.Bottleneck(3, strides)
    assert_agrees(block, bottleneck, (2, 4, 6, channels))
    assert (block.shortcut is not None) == shortcut


def attention_pooling(layer, x):
    """One image and head at a time."""
    positions = layer.position_embedding.numpy().astype("float64")
    query, key, value, output = (
        weights(projection)
        for projection in (
            layer.attention.query,
            layer.attention.key,
            layer.attention.value,
            layer.attention.output_projection,
        )
    )
    embeddings = []
    for image in x.reshape(len(x), -1, x.shape[-1]):
        tokens = np.concatenate([image.mean(0, keepdims=True), image]) + positions
        q = tokens[0] @ query[0] + query[1]
        k, v = (tokens @ kernel + bias for kernel, bias in (key, value))
        heads = []
        for head in np.split(np.arange(len(q)), layer.num_heads):
            logits = k[:, head] @ q[head] / np.sqrt(len(head))
            heads.append(scipy.special.softmax(logits) @ v[:, head])
        embeddings.append(np.concatenate(heads) @ output[0] + output[1])
    return np.stack(embeddings)


def test_attention_pooling_agrees_with_a_loop():
    layer = modified_resnet.AttentionPooling(2, embedding_dim=6)
    assert_agrees(layer, attention_pooling, (2, 3, 2, 8))


def test_the_stem_halves_twice_and_sees_one_pixel_before_the_first():
    encoder = modified_resnet.ModifiedResNet(**TINY)
    encoder.build(None)
    randomize_weights(encoder)
    images = random_images(1, 32, 32, 3)
    assert encoder.stem(images).shape == (1, 8, 8, 4)
    (kernel,) = weights(encoder.stem.get_layer("conv1"))
    padded = np.pad(images.astype("float64"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = np.einsum("hwi,hwio->o", padded[0, 2:5, 4:7], kernel)
    first_layers = encoder.stem.layers[:2]
    x = images
    for layer in first_layers:
        x = layer(x)
    np.testing.assert_allclose(x[0, 1, 2], expected, rtol=1e-5, atol=1e-6)


def test_a_stage_too_many_is_refused():
    with pytest.raises(ValueError, match=r"depths needs four stages; got \(1, 1\)"):
        modified_resnet.ModifiedResNet(**TINY | {"depths": (1, 1)})


def test_an_image_size_that_32_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="image_size 48 is no multiple of 32"):
        modified_resnet.ModifiedResNet(**TINY | {"image_size": 48})
