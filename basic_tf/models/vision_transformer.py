"""CLIP's vision transformer (Dosovitskiy et al. 2020; CLIP section 2.4)."""

import keras
from keras import layers, ops

from basic_tf.models import precision
from basic_tf.models.pixel_normalization import CLIP_MEAN, CLIP_STD, normalize_pixels
from basic_tf.models.text_transformer import TransformerBlock


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class VisionTransformer(keras.Model):
    """Patches and a class token through a transformer; the class token, projected.

    As in CLIP the patch embedding has no bias and a layer norm stands before the
    transformer.

    Args:
        patch_size: side of a patch in pixels; divides `image_size`.
        num_layers: blocks.
        width: width of the transformer.
        num_heads: attention heads of each block.
        embedding_dim: D, width of the output.
        image_size: side of the images in pixels; fixes the number of positions.
        mlp_ratio: hidden width of a feed-forward network over `width`.
        activation: "gelu", or "quick_gelu" as OpenAI trained.
        mean, std: of the pixels, one a channel; taken off first.

    Input `[B, image_size, image_size, 3]` in [0, 1]; output `[B, D]`, not normalised.

    Raises:
        ValueError: if `patch_size` does not divide `image_size`; for images of another
            size.

    Example:
        >>> encoder = VisionTransformer(8, num_layers=1, width=32, num_heads=2,
        ...                             embedding_dim=16, image_size=32)
        >>> encoder(keras.random.uniform((2, 32, 32, 3))).shape
        TensorShape([2, 16])
    """

    def __init__(
        self,
        patch_size,
        num_layers,
        width,
        num_heads,
        embedding_dim,
        image_size=224,
        mlp_ratio=4,
        activation="gelu",
        mean=CLIP_MEAN,
        std=CLIP_STD,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if image_size % patch_size:
            raise ValueError(
                f"patch_size {patch_size} does not divide image_size {image_size}"
            )
        self.patch_size = patch_size
        self.num_layers = num_layers
        self.width = width
        self.num_heads = num_heads
        self.embedding_dim = embedding_dim
        self.image_size = image_size
        self.mlp_ratio = mlp_ratio
        self.activation = activation
        self.mean, self.std = tuple(mean), tuple(std)
        self.num_patches = (image_size // patch_size) ** 2
        self.initializer = keras.initializers.RandomNormal(stddev=width**-0.5)
        self.patch_embedding = layers.Conv2D(
            width, patch_size, patch_size, use_bias=False, name="patch_embedding"
        )
        self.pre_norm = layers.LayerNormalization(epsilon=1e-5, name="pre_norm")
        self.blocks = [
            TransformerBlock(num_heads, mlp_ratio, activation, name=f"block{index}")
            for index in range(num_layers)
        ]
        self.norm = layers.LayerNormalization(epsilon=1e-5, name="norm")
        self.projection = layers.Dense(
            embedding_dim,
            use_bias=False,
            kernel_initializer=self.initializer.clone(),
            name="projection",
        )

    def build(self, input_shape):
        tokens = (None, self.num_patches + 1, self.width)
        self.class_embedding = self.add_weight(
            name="class_embedding", shape=(self.width,), initializer=self.initializer
        )
        self.position_embedding = self.add_weight(
            name="position_embedding",
            shape=tokens[1:],
            initializer=self.initializer.clone(),
        )
        self.patch_embedding.build((None, self.image_size, self.image_size, 3))
        for layer in (self.pre_norm, *self.blocks):
            layer.build(tokens)
        self.norm.build((None, self.width))
        self.projection.build((None, self.width))

    def call(self, images, training=None):
        # `training` changes nothing here; every encoder takes it.
        images = normalize_pixels(
            images, self.image_size, self.mean, self.std, self.compute_dtype
        )
        patches = self.patch_embedding(images)
        patches = ops.reshape(patches, (-1, self.num_patches, self.width))
        first = ops.broadcast_to(
            self.class_embedding, (ops.shape(patches)[0], 1, self.width)
        )
        x = ops.concatenate([first, patches], axis=1) + self.position_embedding
        x = self.pre_norm(x)
        for block in self.blocks:
            x = block(x, bias=None)
        return self.projection(self.norm(x[:, 0]))

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.embedding_dim

    def get_config(self):
        return super().get_config() | {
            "patch_size": self.patch_size,
            "num_layers": self.num_layers,
            "width": self.width,
            "num_heads": self.num_heads,
            "embedding_dim": self.embedding_dim,
            "image_size": self.image_size,
            "mlp_ratio": self.mlp_ratio,
            "activation": self.activation,
            "mean": self.mean,
            "std": self.std,
        }
