"""The residual block that SimCLR's and CLIP's ResNets share, and its batch norm."""

import keras
from keras import layers, ops

from basic_tf.models import precision


def batch_norm(name, **options):
    """Batch norm with the constants of SimCLR's and CLIP's networks, PyTorch's."""
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=name, **options)


@precision.handed_down
class PostActivationBlock(layers.Layer):
    """`relu(residual(x) + shortcut(x))` (He et al. 2016, eq. 2).

    Subclasses say which layers the two are made of, none for the identity.

    Args:
        filters: inner width.
        strides: 1 or 2.
    """

    def __init__(self, filters, strides=1, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.strides = strides

    def residual_layers(self):
        """List of the layers of the residual branch."""
        raise NotImplementedError

    def shortcut_layers(self, input_width):
        """List of the layers of the shortcut."""
        raise NotImplementedError

    def build(self, input_shape):
        self.residual = keras.Sequential(self.residual_layers(), name="residual")
        self.residual.build(input_shape)
        self.shortcut = None
        if shortcut := self.shortcut_layers(input_shape[-1]):
            self.shortcut = keras.Sequential(shortcut, name="shortcut")
            self.shortcut.build(input_shape)

    def call(self, inputs, training=None):
        residual = self.residual(inputs, training=training)
        if self.shortcut is not None:
            inputs = self.shortcut(inputs, training=training)
        return ops.relu(inputs + residual)

    def compute_output_shape(self, input_shape):
        return self.residual.compute_output_shape(input_shape)

    def get_config(self):
        return super().get_config() | {"filters": self.filters, "strides": self.strides}
