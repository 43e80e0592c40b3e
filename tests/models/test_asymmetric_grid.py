"""The grid of encoder sizes against the counts that the study and CLIP print."""

import pytest

from basic_tf.models import asymmetric_grid, zoo

# Heads, and parameters in millions.
IMAGE_TABLE = {
    "atto": (4, 10),
    "tiny": (10, 50),
    "base": (12, 86),
    "giant": (14, 194),
    "colossal": (18, 352),
}
TEXT_TABLE = {
    "femto": (1, 3),
    "atto": (2, 7),
    "nano": (4, 18),
    "tiny": (6, 37),
    "base": (8, 63),
    "giant": (12, 145),
}


def blocks(num_layers, width):
    """Attention, a feed-forward network four times as wide, two norms, with biases."""
    return num_layers * (4 * (width**2 + width) + 8 * width**2 + 5 * width + 4 * width)


@pytest.mark.parametrize("name", IMAGE_TABLE)
def test_image_encoders_have_the_printed_millions_and_every_weight(name):
    options = asymmetric_grid.IMAGE_ENCODERS[name]
    counted = zoo.describe(f"image_asym_{name}").parameters
    assert (options["num_heads"], round(counted / 1e6)) == IMAGE_TABLE[name]
    width, layers = options["width"], options["num_layers"]
    patches, tokens, norms = 3 * 16**2 * width, (14**2 + 2) * width, 4 * width
    assert counted == patches + tokens + norms + blocks(layers, width) + 512 * width


@pytest.mark.parametrize("name", TEXT_TABLE)
def test_text_encoders_have_the_printed_millions_and_every_weight(name):
    options = asymmetric_grid.TEXT_ENCODERS[name]
    counted = zoo.describe(f"text_asym_{name}").parameters
    assert (options["num_heads"], round(counted / 1e6)) == TEXT_TABLE[name]
    width, layers = options["width"], options["num_layers"]
    embeddings, norm = (49_408 + 77) * width, 2 * width
    assert counted == embeddings + norm + blocks(layers, width) + 512 * width


def test_the_pair_of_base_sizes_has_every_parameter_of_clip_vit_b_16():
    # That of OpenAI's checkpoint ViT-B/16.
    assert zoo.describe("asym_base_base").parameters == 149_620_737


def test_every_image_encoder_is_paired_with_every_text_encoder():
    assert len(asymmetric_grid.CONFIGURATIONS) == 30
    pair = zoo.configuration("asym_giant_femto")
    assert pair["image_encoder"] == asymmetric_grid.IMAGE_ENCODERS["giant"]
    assert pair["text_encoder"] == asymmetric_grid.TEXT_ENCODERS["femto"]
