"""The model of BASIC and CLIP: two encoders into one space, and a temperature."""

import math

import keras
from keras import ops

INITIAL_TEMPERATURE = 0.07  # CLIP section 2.5
MAX_LOG_SCALE = math.log(100.0)  # CLIP section 2.5: logits are scaled by at most 100


@keras.saving.register_keras_serializable("basic_tf")
class DualEncoder(keras.Model):
    """Image encoder F, text encoder G and the learned log-scale `t`.

    Logits are `exp(t) * cosine`; `t` starts at `ln(1 / 0.07)`. The optimizer step keeps
    it at most `ln 100` (`ContrastiveTrainer`).

    Args:
        image_encoder: maps `[B, H, W, 3]` in [0, 1] to `[B, D]`; has an `image_size`.
        text_encoder: maps `[B, L]` token ids to `[B, D]`.

    Called on `{"image", "token_ids"}` it gives both embeddings, `[B, D]` float32 unit
    vectors.

    Example:
        >>> from basic_tf.models import zoo
        >>> model = zoo.build(zoo.configuration("basic_nano"), vocabulary_size=100)
        >>> model.encode_image(keras.ops.ones((2, 32, 32, 3))).shape
        TensorShape([2, 128])
    """

    def __init__(self, image_encoder, text_encoder, **kwargs):
        super().__init__(**kwargs)
        self.image_encoder = image_encoder
        self.text_encoder = text_encoder

    def build(self, input_shape=None):
        # Encoders that have weights keep them: pretrained ones, and those of a file.
        if not self.image_encoder.built:
            # Keras traces a model that is exported for the shape it was built with.
            size = self.image_encoder.image_size
            self.image_encoder.build((None, size, size, 3))
        if not self.text_encoder.built:
            self.text_encoder.build((None, None))
        self.log_scale = self.add_weight(
            name="log_scale",
            shape=(),
            dtype="float32",
            autocast=False,
            initializer=keras.initializers.Constant(-math.log(INITIAL_TEMPERATURE)),
        )

    def encode_image(self, images, training=False):
        """`[B, H, W, 3]` in [0, 1] -> `[B, D]` float32 unit vectors."""
        return normalize(self.image_encoder(images, training=training))

    def encode_text(self, token_ids, training=False):
        """`[B, L]` token ids -> `[B, D]` float32 unit vectors."""
        return normalize(self.text_encoder(token_ids, training=training))

    def call(self, inputs, training=False):
        return (
            self.encode_image(inputs["image"], training),
            self.encode_text(inputs["token_ids"], training),
        )

    def get_config(self):
        return super().get_config() | {
            "image_encoder": keras.saving.serialize_keras_object(self.image_encoder),
            "text_encoder": keras.saving.serialize_keras_object(self.text_encoder),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for encoder in ("image_encoder", "text_encoder"):
            config[encoder] = keras.saving.deserialize_keras_object(config[encoder])
        return cls(**config)


def normalize(embeddings):
    """`[..., D]` -> float32 unit vectors; a zero vector stays zero."""
    embeddings = ops.cast(embeddings, "float32")
    # The gradient of `ops.normalize` is NaN at zero where XLA compiles it.
    squared_norm = ops.sum(ops.square(embeddings), axis=-1, keepdims=True)
    return embeddings * ops.rsqrt(ops.maximum(squared_norm, 1e-24))
