"""Activations by name: those of Keras, and CLIP's own."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("basic_tf")
def quick_gelu(x):
    """`x * sigmoid(1.702 x)`, what OpenAI's CLIP was trained with in place of GELU.

    Example:
        >>> quick_gelu(keras.ops.zeros((2, 3))).shape
        TensorShape([2, 3])
    """
    return x * ops.sigmoid(1.702 * x)


def activation(name):
    """The function of a name: "quick_gelu", or any that Keras knows.

    Raises:
        ValueError: for an unknown name.
    """
    return quick_gelu if name == "quick_gelu" else keras.activations.get(name)
