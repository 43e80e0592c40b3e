"""The feed-forward half of a pre-norm transformer block."""

import keras
from keras import layers

from basic_tf.models import activations


def feed_forward(width, mlp_ratio, activation, epsilon=1e-5):
    """Norm, expansion, activation, projection: `[..., width]` to `[..., width]`.

    Args:
        width: of input and output.
        mlp_ratio: hidden width over `width`; the hidden width is rounded down.
        activation: of the hidden layer, a name as `activations.activation` takes it.
        epsilon: of the norm.

    Returns:
        A `keras.Sequential` to be built.
    """
    return keras.Sequential(
        [
            layers.LayerNormalization(epsilon=epsilon, name="norm"),
            layers.Dense(
                int(width * mlp_ratio),
                activations.activation(activation),
                name="expand",
            ),
            layers.Dense(width, name="project"),
        ],
        name="feed_forward",
    )
