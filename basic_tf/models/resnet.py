"""SimCLR's residual networks (SimCLR section 4.2)."""

import keras
from keras import layers, ops

from basic_tf.models import precision
from basic_tf.models.post_activation import PostActivationBlock, batch_norm

STEMS = ("imagenet", "cifar")


def convolution(filters, size, strides, name):
    """A convolution without bias, padded by the same on all sides.

    TensorFlow's own "same" padding is lopsided where there is a stride.

    Returns:
        A list of layers, which map `[B, H, W, C]` to
        `[B, ceil(H / strides), ceil(W / strides), filters]`.
    """
    padded = strides > 1 and size > 1
    convolve = layers.Conv2D(
        filters,
        size,
        strides,
        padding="valid" if padded else "same",
        use_bias=False,
        kernel_initializer=keras.initializers.VarianceScaling(),
        name=name,
    )
    padding = [layers.ZeroPadding2D(size // 2, name=f"{name}_padding")]
    return (padding if padded else []) + [convolve]


@keras.saving.register_keras_serializable("basic_tf")
class ResNetBlock(PostActivationBlock):
    """The block of He et al. 2016 as SimCLR has it.

    The stride is that of the first 3x3 convolution, in a bottleneck the middle one: at
    the first 1x1, as He et al. print it, three of four positions would not be looked
    at. The last norm of the residual starts at zero, and so the block as the identity.

    Args:
        filters: width of the 3x3 convolutions; the output is 4 times as wide in a
            bottleneck.
        strides: 1 or 2.
        bottleneck: 1x1, 3x3, 1x1 convolutions; otherwise 3x3, 3x3.
        project: whether the shortcut is a 1x1 convolution and a norm, or the identity.

    Input `[B, H, W, C]`, output `[B, ceil(H / strides), ceil(W / strides), F]`, with F
    `filters` or 4 times that.

    Raises:
        ValueError: when built, for an identity that would change the shape.

    Example:
        >>> ResNetBlock(8, strides=2)(keras.ops.ones((3, 8, 8, 16))).shape
        TensorShape([3, 4, 4, 32])
    """

    def __init__(self, filters, strides=1, bottleneck=True, project=True, **kwargs):
        super().__init__(filters, strides, **kwargs)
        self.bottleneck = bottleneck
        self.project = project
        self.output_filters = filters * 4 if bottleneck else filters

    def residual_layers(self):
        sizes = (1, 3, 1) if self.bottleneck else (3, 3)
        residual = []
        for index, size in enumerate(sizes):
            is_last = index == len(sizes) - 1
            filters = self.output_filters if is_last else self.filters
            strides = self.strides if index == sizes.index(3) else 1
            residual += convolution(filters, size, strides, f"conv{index}")
            gain = "zeros" if is_last else "ones"
            residual.append(batch_norm(f"norm{index}", gamma_initializer=gain))
            if not is_last:
                residual.append(layers.Activation("relu", name=f"activation{index}"))
        return residual

    def shortcut_layers(self, input_width):
        if self.project:
            convolve = convolution(self.output_filters, 1, self.strides, "conv")
            return [*convolve, batch_norm("norm")]
        if self.strides > 1 or input_width != self.output_filters:
            raise ValueError(
                f"a block from width {input_width} to {self.output_filters} with "
                f"strides {self.strides} needs project=True"
            )
        return []

    def get_config(self):
        return super().get_config() | {
            "bottleneck": self.bottleneck,
            "project": self.project,
        }


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class ResNet(keras.Model):
    """Residual network as SimCLR uses it (Chen et al. 2020): no classifier, no head.

    Args:
        depths: blocks of each stage. Each but the first halves the sides and doubles
            the width.
        width: of the stem and the first stage; 64 times SimCLR's multiplier.
        bottleneck: the kind of block, as ResNet-50 and deeper have it.
        stem: "imagenet", a 7x7 convolution of stride 2 and max pooling, or "cifar", a
            3x3 convolution of stride 1 (SimCLR B.9).
        embedding_dim: width of the output; where that of the last stage is another, a
            linear layer follows the mean. None for the stage's.
        image_size: side of the images in pixels; any size can be called.

    Input `[B, H, W, 3]` in [0, 1]; output `[B, embedding_dim]`, the mean over
    positions, which is the representation in front of the head.

    Raises:
        ValueError: for another stem.

    Example:
        >>> encoder = ResNet((1, 1), width=8, stem="cifar", image_size=32)
        >>> encoder(keras.random.uniform((2, 32, 32, 3))).shape
        TensorShape([2, 64])
    """

    def __init__(
        self,
        depths,
        width=64,
        bottleneck=True,
        stem="imagenet",
        image_size=224,
        embedding_dim=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if stem not in STEMS:
            raise ValueError(f"unknown stem {stem!r}; known: {', '.join(STEMS)}")
        self.depths = tuple(depths)
        self.width = width
        self.bottleneck = bottleneck
        self.stem = stem
        self.image_size = image_size
        self.stages = [self._stem()]
        for stage, depth in enumerate(self.depths):
            for block in range(depth):
                self.stages.append(
                    ResNetBlock(
                        width * 2**stage,
                        strides=2 if stage and not block else 1,
                        bottleneck=bottleneck,
                        project=not block,
                        name=f"stage{stage}_block{block}",
                    )
                )
        width = self.stages[-1].output_filters
        self.embedding_dim = embedding_dim or width
        self.pool = layers.GlobalAveragePooling2D(name="pool")
        self.projection = None
        if self.embedding_dim != width:
            self.projection = layers.Dense(self.embedding_dim, name="projection")

    def _stem(self):
        cifar = self.stem == "cifar"
        stem = convolution(self.width, 3 if cifar else 7, 1 if cifar else 2, "conv")
        stem += [batch_norm("norm"), layers.Activation("relu", name="activation")]
        if not cifar:
            stem.append(layers.MaxPooling2D(3, 2, padding="same", name="pool"))
        return keras.Sequential(stem, name="stem")

    def build(self, input_shape):
        shape = input_shape
        for stage in self.stages:
            stage.build(shape)
            shape = stage.compute_output_shape(shape)
        if self.projection is not None:
            self.projection.build((shape[0], shape[-1]))

    def call(self, images, training=None):
        x = ops.cast(images, self.compute_dtype)
        for stage in self.stages:
            x = stage(x, training=training)
        x = self.pool(x)
        return x if self.projection is None else self.projection(x)

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.embedding_dim

    def get_config(self):
        return super().get_config() | {
            "depths": self.depths,
            "width": self.width,
            "bottleneck": self.bottleneck,
            "stem": self.stem,
            "image_size": self.image_size,
            "embedding_dim": self.embedding_dim,
        }
