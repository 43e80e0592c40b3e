"""The feed-forward half of a pre-norm transformer block."""

import keras
from keras import layers


def feed_forward(width, mlp_ratio, activation):
    """Norm, expansion, activation, projection: `[..., width]` to `[..., width]`.

    Args:
        width: of input and output.
        mlp_ratio: hidden width over `width`.
        activation: of the hidden layer.

    Returns:
        A `keras.Sequential` to be built.
    """
    return keras.Sequential(
        [
            layers.LayerNormalization(epsilon=1e-5, name="norm"),
            layers.Dense(width * mlp_ratio, activation, name="expand"),
            layers.Dense(width, name="project"),
        ],
        name="feed_forward",
    )
