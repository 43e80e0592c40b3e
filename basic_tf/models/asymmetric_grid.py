"""CLIP encoders of 5 image and 6 text sizes in every pair, to see which pairs balance.

The sizes are those of the 2026 study of text encoders that are too big for their image
encoder; each pair has a name such as `asym_base_tiny`.
"""

import dataclasses

IMAGE_SIZE, PATCH_SIZE = 224, 16
VOCABULARY_SIZE, MAX_LENGTH = 49_408, 77  # CLIP section 2.4
EMBEDDING_DIM = 512
HEAD_DIM = 64
MLP_RATIO = 4


@dataclasses.dataclass(frozen=True)
class Size:
    """Of a transformer.

    Attributes:
        num_layers: blocks.
        width: of the tokens, 64 for each head.
    """

    num_layers: int
    width: int

    @property
    def num_heads(self):
        return self.width // HEAD_DIM


IMAGE_ENCODERS = {
    "atto": Size(12, 256),
    "tiny": Size(10, 640),
    "base": Size(12, 768),
    "giant": Size(20, 896),
    "colossal": Size(22, 1152),
}

TEXT_ENCODERS = {
    "femto": Size(1, 64),
    "atto": Size(3, 128),
    "nano": Size(6, 256),
    "tiny": Size(10, 384),
    "base": Size(12, 512),
    "giant": Size(15, 768),
}

PAIRS = {
    f"asym_{of_images}_{of_texts}": (image_size, text_size)
    for of_images, image_size in IMAGE_ENCODERS.items()
    for of_texts, text_size in TEXT_ENCODERS.items()
}


def sizes(name):
    """The sizes of a named pair: of its image and of its text encoder.

    Raises:
        ValueError: naming the known sizes.

    Example:
        >>> sizes("asym_base_tiny")
        (Size(num_layers=12, width=768), Size(num_layers=10, width=384))
    """
    if name not in PAIRS:
        raise ValueError(
            f"no pair {name!r}; known: asym_IMAGE_TEXT with IMAGE of "
            f"{', '.join(IMAGE_ENCODERS)} and TEXT of {', '.join(TEXT_ENCODERS)}"
        )
    return PAIRS[name]


def image_parameters(size):
    """Parameters of CLIP's vision transformer of this size.

    Patches without bias, a class token, learned positions, a norm before the blocks and
    one after, and a projection without bias.
    """
    width = size.width
    patches = 3 * PATCH_SIZE**2 * width
    positions = ((IMAGE_SIZE // PATCH_SIZE) ** 2 + 1) * width
    norms = 2 * 2 * width
    return patches + width + positions + norms + _blocks(size) + width * EMBEDDING_DIM


def text_parameters(size):
    """Parameters of CLIP's text transformer of this size.

    Token and position embeddings, a norm after the blocks, a projection without bias.
    """
    width = size.width
    embeddings = (VOCABULARY_SIZE + MAX_LENGTH) * width
    return embeddings + 2 * width + _blocks(size) + width * EMBEDDING_DIM


def parameters(name):
    """Parameters of a named pair, the temperature included."""
    image_size, text_size = sizes(name)
    return image_parameters(image_size) + text_parameters(text_size) + 1


def _blocks(size):
    """Attention, feed-forward network and two norms a block, all with biases."""
    width = size.width
    attention = 4 * (width**2 + width)
    feed_forward = 2 * MLP_RATIO * width**2 + (MLP_RATIO + 1) * width
    return size.num_layers * (attention + feed_forward + 2 * 2 * width)
