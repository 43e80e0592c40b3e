"""CLIP's modified ResNet: anti-aliased strides and attention pooling (CLIP 2.4)."""

import keras
from keras import layers, ops

from basic_tf.models import precision
from basic_tf.models.attention import SelfAttention
from basic_tf.models.pixel_normalization import CLIP_MEAN, CLIP_STD, normalize_pixels
from basic_tf.models.post_activation import PostActivationBlock, batch_norm

EXPANSION = 4  # output width of a bottleneck over its inner width
TOTAL_STRIDE = 32


@keras.saving.register_keras_serializable("basic_tf")
class Bottleneck(PostActivationBlock):
    """Residual bottleneck whose stride is an average pool (He et al. 2018, ResNet-D).

    1x1, 3x3, pool, 1x1 with batch norms and ReLU; the shortcut is pooled and projected
    where the stride or the width asks for it. Every convolution has stride 1.

    Args:
        filters: inner width; the output has four times as many channels.
        strides: 1 or 2.

    Input `[B, H, W, C]`, output `[B, H / strides, W / strides, 4 * filters]`.

    Example:
        >>> Bottleneck(8, strides=2)(keras.ops.ones((3, 8, 8, 16))).shape
        TensorShape([3, 4, 4, 32])
    """

    def residual_layers(self):
        return [
            layers.Conv2D(self.filters, 1, use_bias=False, name="conv1"),
            batch_norm("norm1"),
            layers.ReLU(),
            layers.Conv2D(
                self.filters, 3, padding="same", use_bias=False, name="conv2"
            ),
            batch_norm("norm2"),
            layers.ReLU(),
            *self._pool(),
            # The block starts as its shortcut, as in CLIP.
            *self._widen("conv3", "norm3", gamma_initializer="zeros"),
        ]

    def shortcut_layers(self, input_width):
        if self.strides == 1 and input_width == self.filters * EXPANSION:
            return []
        return [*self._pool(), *self._widen("conv", "norm")]

    def _pool(self):
        return [layers.AveragePooling2D(self.strides)] if self.strides > 1 else []

    def _widen(self, convolution, norm, **options):
        width = self.filters * EXPANSION
        return [
            layers.Conv2D(width, 1, use_bias=False, name=convolution),
            batch_norm(norm, **options),
        ]


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class AttentionPooling(layers.Layer):
    """Attention of the mean over all positions to the mean and the positions.

    Args:
        num_heads: must divide C.
        embedding_dim: D, width of the output.

    Input `[B, H, W, C]` with fixed H and W, output `[B, D]`.

    Example:
        >>> AttentionPooling(2, embedding_dim=6)(keras.ops.ones((3, 4, 4, 8))).shape
        TensorShape([3, 6])
    """

    def __init__(self, num_heads, embedding_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.embedding_dim = embedding_dim

    def build(self, input_shape):
        _, height, width, channels = input_shape
        tokens = (None, height * width + 1, channels)
        self.position_embedding = self.add_weight(
            name="position_embedding",
            shape=tokens[1:],
            initializer=keras.initializers.RandomNormal(stddev=channels**-0.5),
        )
        self.attention = SelfAttention(
            channels, self.num_heads, self.embedding_dim, name="attention"
        )
        self.attention.build(tokens)

    def call(self, inputs):
        _, height, width, channels = inputs.shape
        tokens = ops.reshape(inputs, (-1, height * width, channels))
        mean = ops.mean(tokens, axis=1, keepdims=True)
        tokens = ops.concatenate([mean, tokens], axis=1) + self.position_embedding
        return ops.squeeze(self.attention(tokens, queries=tokens[:, :1]), axis=1)

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.embedding_dim

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "embedding_dim": self.embedding_dim,
        }


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class ModifiedResNet(keras.Model):
    """Three-convolution stem, four stages of bottlenecks, attention pooling.

    Args:
        depths: blocks of each of the four stages.
        width: of the stem; stage s has inner width `width * 2^s`.
        num_heads: attention heads of the pooling.
        embedding_dim: D, width of the output.
        image_size: side of the images in pixels, a multiple of 32; fixes the positions
            of the pooling.
        mean, std: of the pixels, one a channel; taken off first.

    Input `[B, image_size, image_size, 3]` in [0, 1]; output `[B, D]`, not normalised.

    Raises:
        ValueError: for another number of stages, if 32 does not divide `image_size`,
            or for images of another size.

    Example:
        >>> encoder = ModifiedResNet((1, 1, 1, 1), width=4, num_heads=2,
        ...                          embedding_dim=16, image_size=64)
        >>> encoder(keras.random.uniform((2, 64, 64, 3))).shape
        TensorShape([2, 16])
    """

    def __init__(
        self,
        depths,
        width,
        num_heads,
        embedding_dim,
        image_size=224,
        mean=CLIP_MEAN,
        std=CLIP_STD,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if len(depths) != 4:
            raise ValueError(f"depths needs four stages; got {tuple(depths)}")
        if image_size % TOTAL_STRIDE:
            above = -(-image_size // TOTAL_STRIDE) * TOTAL_STRIDE
            raise ValueError(
                f"image_size {image_size} is no multiple of {TOTAL_STRIDE}; use {above}"
            )
        self.depths = tuple(depths)
        self.width = width
        self.num_heads = num_heads
        self.embedding_dim = embedding_dim
        self.image_size = image_size
        self.mean, self.std = tuple(mean), tuple(std)
        self.stem = self._stem()
        self.blocks = [
            Bottleneck(
                width * 2**stage,
                strides=2 if stage and not block else 1,
                name=f"stage{stage + 1}_block{block}",
            )
            for stage, depth in enumerate(self.depths)
            for block in range(depth)
        ]
        self.pooling = AttentionPooling(num_heads, embedding_dim, name="pooling")

    def _stem(self):
        # PyTorch pads a stride-2 convolution by one on each side, "same" only behind.
        stem = [layers.ZeroPadding2D(1)]
        filters = (self.width // 2, self.width // 2, self.width)
        for index, width in enumerate(filters, start=1):
            stem += [
                layers.Conv2D(
                    width,
                    3,
                    strides=2 if index == 1 else 1,
                    padding="valid" if index == 1 else "same",
                    use_bias=False,
                    name=f"conv{index}",
                ),
                batch_norm(f"norm{index}"),
                layers.ReLU(),
            ]
        return keras.Sequential([*stem, layers.AveragePooling2D(2)], name="stem")

    def build(self, input_shape):
        shape = (None, self.image_size, self.image_size, 3)
        for layer in (self.stem, *self.blocks, self.pooling):
            layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, images, training=None):
        x = normalize_pixels(
            images, self.image_size, self.mean, self.std, self.compute_dtype
        )
        for layer in (self.stem, *self.blocks):
            x = layer(x, training=training)
        return self.pooling(x)

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.embedding_dim

    def get_config(self):
        return super().get_config() | {
            "depths": self.depths,
            "width": self.width,
            "num_heads": self.num_heads,
            "embedding_dim": self.embedding_dim,
            "image_size": self.image_size,
            "mean": self.mean,
            "std": self.std,
        }
