"""CoAtNet (Dai et al. 2021): convolution stages, then relative-attention stages."""

import keras
from keras import layers, ops

from basic_tf.models.mbconv import MBConv, batch_norm
from basic_tf.models.relative_attention import RelativeTransformerBlock


@keras.saving.register_keras_serializable("basic_tf")
class CoAtNet(keras.Model):
    """CoAtNet image encoder: stem, MBConv and transformer stages, mean, projection.

    Images are mapped to [-1, 1] first, and the mean is normalised before the projection
    to D (ours: the paper ends in a classifier).

    Args:
        depths: blocks of each stage; the first stage is the convolutional stem.
        widths: output width of each stage.
        strides: stride of each stage's first block.
        blocks: kind of each stage after the stem, "mbconv" or "transformer".
        embedding_dim: D, width of the output.
        image_size: side of the images in pixels; fixes the relative-position tables.
        head_dim: width of an attention head.
        stride_on, expansion_base, squeeze_base: see `MBConv`.
        activation: "gelu" in the paper.

    Input `[B, image_size, image_size, 3]` in [0, 1]; output `[B, D]`, not normalised.

    Raises:
        ValueError: if the stage lists differ in length or name an unknown block.

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
        self.embedding_dim = embedding_dim
        self.image_size = image_size
        self.head_dim = head_dim
        self.stride_on = stride_on
        self.expansion_base = expansion_base
        self.squeeze_base = squeeze_base
        self.activation = activation
        self.stages = [self._stem()]
        for index, kind in enumerate(self.blocks, start=1):
            self.stages.extend(self._stage(index, kind))
        self.head = keras.Sequential(
            [
                layers.GlobalAveragePooling2D(),
                layers.LayerNormalization(epsilon=1e-5, name="norm"),
                layers.Dense(embedding_dim, name="projection"),
            ],
            name="head",
        )

    def _stem(self):
        stem = []
        for index in range(self.depths[0]):
            if index:
                stem += [
                    batch_norm(f"norm{index}"),
                    layers.Activation(self.activation, name=f"activation{index}"),
                ]
            strides = self.strides[0] if index == 0 else 1
            stem.append(
                layers.Conv2D(
                    self.widths[0], 3, strides, padding="same", name=f"conv{index}"
                )
            )
        return keras.Sequential(stem, name="stage0")

    def _stage(self, index, kind):
        mbconv = {
            "stride_on": self.stride_on,
            "expansion_base": self.expansion_base,
            "squeeze_base": self.squeeze_base,
        }
        kinds = {
            "mbconv": (MBConv, mbconv),
            "transformer": (RelativeTransformerBlock, {"head_dim": self.head_dim}),
        }
        if kind not in kinds:
            raise ValueError(f"unknown block {kind!r}; known: {', '.join(kinds)}")
        block_class, options = kinds[kind]
        for block in range(self.depths[index]):
            yield block_class(
                self.widths[index],
                self.strides[index] if block == 0 else 1,
                activation=self.activation,
                name=f"stage{index}_block{block}",
                **options,
            )

    def build(self, input_shape):
        shape = (None, self.image_size, self.image_size, 3)
        for layer in [*self.stages, self.head]:
            layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, images, training=None):
        x = ops.cast(images, self.compute_dtype) * 2.0 - 1.0
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
            "embedding_dim": self.embedding_dim,
            "image_size": self.image_size,
            "head_dim": self.head_dim,
            "stride_on": self.stride_on,
            "expansion_base": self.expansion_base,
            "squeeze_base": self.squeeze_base,
            "activation": self.activation,
        }
