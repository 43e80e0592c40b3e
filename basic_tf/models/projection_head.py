"""SimCLR's projection head, from a representation to where the loss compares."""

import keras
from keras import layers

from basic_tf.models import precision
from basic_tf.models.post_activation import batch_norm


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class ProjectionHead(layers.Layer):
    """1 to 3 linear layers with ReLU between them (SimCLR section 4.2).

    Every layer ends in batch norm in place of a bias, the last in one without an
    offset, as in the authors' program. Downstream the representation in front of the
    head is used, hence a layer of its own.

    Args:
        num_layers: 1 is the linear head, 2 that of SimCLR, 3 that of its second
            version.
        output_dim: width of the output.
        hidden_dim: width of the layers before; None for the input's.

    Input `[B, C]`, output `[B, output_dim]`, not normalised.

    Raises:
        ValueError: for another number of layers.

    Example:
        >>> ProjectionHead(output_dim=4)(keras.ops.ones((3, 16))).shape
        TensorShape([3, 4])
    """

    def __init__(self, num_layers=2, output_dim=128, hidden_dim=None, **kwargs):
        super().__init__(**kwargs)
        if num_layers not in (1, 2, 3):
            raise ValueError(f"num_layers {num_layers} is not 1, 2 or 3")
        self.num_layers = num_layers
        self.output_dim = output_dim
        self.hidden_dim = hidden_dim

    def build(self, input_shape):
        members = []
        for index in range(self.num_layers):
            is_last = index == self.num_layers - 1
            units = self.output_dim if is_last else self.hidden_dim or input_shape[-1]
            members += [
                layers.Dense(units, use_bias=False, name=f"dense{index}"),
                batch_norm(f"norm{index}", center=not is_last),
            ]
            if not is_last:
                members.append(layers.Activation("relu", name=f"activation{index}"))
        self.layers = keras.Sequential(members, name="layers")
        self.layers.build(input_shape)

    def call(self, inputs, training=None):
        return self.layers(inputs, training=training)

    def compute_output_shape(self, input_shape):
        return *input_shape[:-1], self.output_dim

    def get_config(self):
        return super().get_config() | {
            "num_layers": self.num_layers,
            "output_dim": self.output_dim,
            "hidden_dim": self.hidden_dim,
        }
