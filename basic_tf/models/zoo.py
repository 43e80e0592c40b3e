"""Names of models and their configurations."""

import copy

from basic_tf.models.coatnet import CoAtNet
from basic_tf.models.dual_encoder import DualEncoder
from basic_tf.models.text_transformer import TextTransformer

CONFIGURATIONS = {
    # For 32 x 32 images: the stages from the third on see 4 x 4 positions. ReLU,
    # because GELU costs a CPU a quarter of its speed.
    "basic_nano": {
        "embedding_dim": 128,
        "image_encoder": {
            "depths": (2, 1, 1, 2, 1),
            "widths": (16, 64, 96, 128, 128),
            "strides": (2, 2, 2, 1, 1),
            "blocks": ("mbconv", "mbconv", "mbconv", "transformer"),
            "image_size": 32,
            "head_dim": 32,
            "stride_on": "depthwise",
            "activation": "relu",
        },
        "text_encoder": {
            "num_layers": 2,
            "width": 128,
            "num_heads": 4,
            "max_length": 16,
            "activation": "relu",
        },
    },
}


def configuration(name):
    """The configuration of a named model, free to be changed.

    Raises:
        ValueError: naming the known models.
    """
    if name not in CONFIGURATIONS:
        raise ValueError(f"no model {name!r}; known: {', '.join(CONFIGURATIONS)}")
    return copy.deepcopy(CONFIGURATIONS[name])


def build(configuration, vocabulary_size):
    """Builds a `DualEncoder` with fresh weights.

    Args:
        configuration: as `configuration` returns it.
        vocabulary_size: token ids of the tokenizer, padding included.

    Returns:
        The built `DualEncoder`.
    """
    embedding_dim = configuration["embedding_dim"]
    model = DualEncoder(
        CoAtNet(
            embedding_dim=embedding_dim,
            name="image_encoder",
            **configuration["image_encoder"],
        ),
        TextTransformer(
            vocabulary_size=vocabulary_size,
            embedding_dim=embedding_dim,
            name="text_encoder",
            **configuration["text_encoder"],
        ),
        name="dual_encoder",
    )
    model.build()
    return model


def count_parameters(model):
    """Trainable parameters of a built model."""
    return sum(variable.shape.num_elements() for variable in model.trainable_variables)
