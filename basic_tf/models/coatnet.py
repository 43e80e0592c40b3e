"""CoAtNet (Dai et al. 2021): convolution stages, then relative-attention stages."""

import keras
from keras import layers

from basic_tf.models import precision
from basic_tf.models.mbconv import MBConv, batch_norm, padding_of
from basic_tf.models.pixel_normalization import normalize_pixels
from basic_tf.models.relative_attention import RelativeTransformerBlock


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class CoAtNet(keras.Model):
    """CoAtNet image encoder: stem, MBConv and transformer stages, mean, projection.

    Images are mapped to [-1, 1] first, and the mean is normalised before the projection
    to D (ours: the paper ends in a classifier). The options from `squeeze_activation`
    on say what timm's networks of the same name have in other ways.

    Args:
        depths: blocks of each stage; the first stage is the convolutional stem.
        widths: output width of each stage.
        strides: stride of each stage's first block.
        blocks: kind of each stage after the stem, "mbconv" or "transformer".
        embedding_dim: D, width of the output; None ends before the projection, and D
            is the last of `widths`.
        image_size: side of the images in pixels; fixes the relative-position tables.
        head_dim: width of an attention head.
        stride_on, expansion_base, squeeze_base: see `MBConv`.
        activation: "gelu" in the paper.
        squeeze_activation, pooling: see `MBConv` and `ResidualBlock`.
        padding: of the strided 3x3 convolutions, see `mbconv.padding_of`.
        stem_bias: whether the stem's convolutions have biases; timm's have none.
        batch_norm_momentum, batch_norm_epsilon: see `MBConv`; of the stem, too.
        layer_norm_epsilon: of the transformers and the head; 1e-6 in timm's.
        head: what stands before the projection, in order: "mean" over the positions,
            "norm", and "tanh", a layer of the same width. timm's of the paper's sizes
            have all three, its smaller ones the norm before the mean.
        projection_bias: OpenCLIP's projection has none.
        mean, std: of the pixels, one a channel; taken off first.

    Input `[B, image_size, image_size, 3]` in [0, 1]; output `[B, D]`, not normalised.

    Raises:
        ValueError: if the stage lists differ in length or name an unknown block, if
            `head` has no mean or names an unknown layer; for images of another size.

    Example:
        >>> encoder = CoAtNet((1, 1, 1), (16, 32, 64), (2, 2, 1),
        ...                   ("mbconv", "transformer"), 64, image_size=32)
        >>> encoder(keras.random.uniform((2, 32, 32, 3))).shape
        TensorShape([2, 64])
    """

    def __init__(
        self,
        depths,
        widths,
        strides,
        blocks,
        embedding_dim,
        image_size=224,
        head_dim=32,
        stride_on="expand",
        expansion_base="input",
        squeeze_base="input",
        activation="gelu",
        squeeze_activation=None,
        pooling="max",
        padding="same",
        stem_bias=True,
        batch_norm_momentum=0.98,
        batch_norm_epsilon=1e-3,
        layer_norm_epsilon=1e-5,
        head=("mean", "norm"),
        projection_bias=True,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not len(depths) == len(widths) == len(strides) == len(blocks) + 1:
            raise ValueError(
                "depths, widths and strides need one entry a stage and blocks one a "
                f"stage after the stem; got {depths}, {widths}, {strides}, {blocks}"
            )
        self.depths, self.widths = tuple(depths), tuple(widths)
        self.strides, self.blocks = tuple(strides), tuple(blocks)
        self.embedding_dim = self.widths[-1] if embedding_dim is None else embedding_dim
        self.image_size = image_size
        self.head_dim = head_dim
        self.stride_on = stride_on
        self.expansion_base = expansion_base
        self.squeeze_base = squeeze_base
        self.activation = activation
        self.squeeze_activation = squeeze_activation
        self.pooling = pooling
        self.padding = padding
        self.stem_bias = stem_bias
        self.batch_norm_momentum = batch_norm_momentum
        self.batch_norm_epsilon = batch_norm_epsilon
        self.layer_norm_epsilon = layer_norm_epsilon
        self.head_layers = tuple(head)
        self.has_projection = embedding_dim is not None
        self.projection_bias = projection_bias
        self.mean, self.std = tuple(mean), tuple(std)
        self.stages = [self._stem()]
        for index, kind in enumerate(self.blocks, start=1):
            self.stages.extend(self._stage(index, kind))
        self.head = self._head()

    def _stem(self):
        stem = []
        for index in range(self.depths[0]):
            if index:
                constants = self.batch_norm_momentum, self.batch_norm_epsilon
                stem += [
                    batch_norm(f"norm{index}", *constants),
                    layers.Activation(self.activation, name=f"activation{index}"),
                ]
            name, strides = f"conv{index}", self.strides[0] if index == 0 else 1
            pad, padding = padding_of(self.padding, strides, name)
            conv = layers.Conv2D(
                self.widths[0],
                3,
                strides,
                padding=padding,
                use_bias=self.stem_bias,
                name=name,
            )
            stem += [*pad, conv]
        return keras.Sequential(stem, name="stage0")

    def _head(self):
        given = self.head_layers
        if "mean" not in given or not set(given) <= {"mean", "norm", "tanh"}:
            raise ValueError(f"head {given} is not of norm, tanh and at least mean")
        head = []
        for kind in given:
            if kind == "mean":
                head.append(layers.GlobalAveragePooling2D())
            elif kind == "norm":
                epsilon = self.layer_norm_epsilon
                head.append(layers.LayerNormalization(epsilon=epsilon, name="norm"))
            else:
                head.append(layers.Dense(self.widths[-1], "tanh", name="tanh"))
        if self.has_projection:
            projection = layers.Dense(
                self.embedding_dim, use_bias=self.projection_bias, name="projection"
            )
            head.append(projection)
        return keras.Sequential(head, name="head")

    def _stage(self, index, kind):
        mbconv = {
            "stride_on": self.stride_on,
            "expansion_base": self.expansion_base,
            "squeeze_base": self.squeeze_base,
            "squeeze_activation": self.squeeze_activation,
            "padding": self.padding,
            "batch_norm_momentum": self.batch_norm_momentum,
            "batch_norm_epsilon": self.batch_norm_epsilon,
        }
        transformer = {
            "head_dim": self.head_dim,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
        kinds = {
            "mbconv": (MBConv, mbconv),
            "transformer": (RelativeTransformerBlock, transformer),
        }
        if kind not in kinds:
            raise ValueError(f"unknown block {kind!r}; known: {', '.join(kinds)}")
        block_class, options = kinds[kind]
        for block in range(self.depths[index]):
            yield block_class(
                self.widths[index],
                self.strides[index] if block == 0 else 1,
                activation=self.activation,
                pooling=self.pooling,
                name=f"stage{index}_block{block}",
                **options,
            )

    def build(self, input_shape):
        shape = (None, self.image_size, self.image_size, 3)
        for layer in [*self.stages, self.head]:
            layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, images, training=None):
        x = normalize_pixels(
            images, self.image_size, self.mean, self.std, self.compute_dtype
        )
        for stage in self.stages:
            # Keras hands `training` on by itself, but not inside `stateless_call`.
            x = stage(x, training=training)
        return self.head(x)

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.embedding_dim

    def get_config(self):
        return super().get_config() | {
            "depths": self.depths,
            "widths": self.widths,
            "strides": self.strides,
            "blocks": self.blocks,
            "embedding_dim": self.embedding_dim if self.has_projection else None,
            "image_size": self.image_size,
            "head_dim": self.head_dim,
            "stride_on": self.stride_on,
            "expansion_base": self.expansion_base,
            "squeeze_base": self.squeeze_base,
            "activation": self.activation,
            "squeeze_activation": self.squeeze_activation,
            "pooling": self.pooling,
            "padding": self.padding,
            "stem_bias": self.stem_bias,
            "batch_norm_momentum": self.batch_norm_momentum,
            "batch_norm_epsilon": self.batch_norm_epsilon,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "head": self.head_layers,
            "projection_bias": self.projection_bias,
            "mean": self.mean,
            "std": self.std,
        }
