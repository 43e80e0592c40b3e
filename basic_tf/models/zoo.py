"""Names of models and their configurations."""

import copy

import keras

from basic_tf.models.coatnet import CoAtNet
from basic_tf.models.dual_encoder import DualEncoder
from basic_tf.models.text_transformer import TextTransformer


def _basic(depths, widths, text_layers, text_width, late_blocks=2, head_dim=32):
    """A model of BASIC Table 5: a CoAtNet (Dai et al. 2021, Table 3) and its text.

    The widths are those of the stem, two or more MBConv stages, and `late_blocks`
    transformer stages; D is the width of the text encoder (ours).
    """
    early = len(depths) - 1 - late_blocks
    blocks = ("mbconv",) * early + ("transformer",) * late_blocks
    # CoAtNet-6 and 7 have two kinds of block at 14 x 14: a stage each here.
    strides = (2, 2, 2, 2, 2) if early == 2 else (2, 2, 2, 2, 1, 2)
    return {
        "embedding_dim": text_width,
        "precision": "float32",
        "image_encoder": {
            "depths": depths,
            "widths": widths,
            "strides": strides,
            "blocks": blocks,
            "image_size": 224,
            "head_dim": head_dim,
            "stride_on": "expand",
            "activation": "gelu",
        },
        "text_encoder": {
            "num_layers": text_layers,
            "width": text_width,
            "num_heads": text_width // 64,
            "max_length": 64,
            "activation": "gelu",
        },
    }


CONFIGURATIONS = {
    "basic_s": _basic((2, 2, 3, 5, 2), (64, 96, 192, 384, 768), 6, 1024),
    "basic_m": _basic((2, 2, 6, 14, 2), (192, 192, 384, 768, 1536), 12, 1024),
    "basic_l": _basic(
        (2, 2, 4, 8, 42, 2),
        (192, 256, 512, 1024, 2048, 3072),
        text_layers=12,
        text_width=2048,
        head_dim=128,
    ),
    # For 32 x 32 images: the stages from the third on see 4 x 4 positions. ReLU,
    # because GELU costs a CPU a quarter of its speed.
    "basic_nano": {
        "embedding_dim": 128,
        "precision": "float32",
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
        configuration: as `configuration` returns it; `precision` is a Keras dtype
            policy, such as "mixed_bfloat16". Weights and embeddings are float32.
        vocabulary_size: token ids of the tokenizer, padding included.

    Returns:
        The built `DualEncoder`.

    Raises:
        ValueError: for an unknown precision.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(configuration["precision"])
    try:
        return _build(configuration, vocabulary_size)
    finally:
        keras.config.set_dtype_policy(before)


def _build(configuration, vocabulary_size):
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
