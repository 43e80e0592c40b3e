"""A dual encoder with all that micro-batching must get right, and few weights."""

import keras
from keras import layers, ops

from basic_tf.models.dual_encoder import DualEncoder

IMAGE_SIZE, VOCABULARY, DIM = 8, 20, 6


class StochasticDepth(layers.Layer):
    """Leaves its input out for whole examples."""

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator(1)

    def call(self, inputs, training=False):
        if not training:
            return inputs
        shape = (ops.shape(inputs)[0],) + (1,) * (len(inputs.shape) - 1)
        kept = keras.random.uniform(shape, seed=self.seed_generator) >= self.rate
        return inputs * ops.cast(kept, inputs.dtype) / (1 - self.rate)


class Residual(layers.Layer):
    """A block: convolution, batch norm and stochastic depth beside the input."""

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.conv = layers.Conv2D(5, 3, padding="same", use_bias=False, name="conv")
        self.norm = layers.BatchNormalization(momentum=0.8, name="norm")
        self.depth = StochasticDepth(rate, name="depth") if rate else None

    def build(self, shape):
        self.conv.build(shape)
        self.norm.build(shape)

    def call(self, inputs, training=False):
        x = self.norm(self.conv(inputs), training=training)
        return inputs + (self.depth(x, training=training) if self.depth else x)


def build(dropout=0.0):
    """`DualEncoder` of a convolutional and a bag-of-words encoder."""
    images = layers.Input((IMAGE_SIZE, IMAGE_SIZE, 3))
    x = layers.Conv2D(5, 3, strides=2, padding="same", use_bias=False)(images)
    x = layers.BatchNormalization(momentum=0.9)(x)
    x = layers.Activation("gelu")(x)
    x = Residual(dropout)(x)
    x = layers.LayerNormalization()(layers.GlobalAveragePooling2D()(x))
    image_encoder = keras.Model(images, layers.Dense(DIM)(x), name="image_encoder")
    image_encoder.image_size = IMAGE_SIZE

    tokens = layers.Input((4,), dtype="int32")
    x = layers.Embedding(VOCABULARY, 7)(tokens)
    x = layers.Dense(9, activation="gelu")(x)
    if dropout:
        x = layers.Dropout(dropout)(x)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    text_encoder = keras.Model(tokens, layers.Dense(DIM)(x), name="text_encoder")
    model = DualEncoder(image_encoder, text_encoder)
    model.build()
    return model
