"""The grid of encoder sizes against the counts that the study and CLIP print."""

import pytest

from basic_tf.models import asymmetric_grid

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


@pytest.mark.parametrize("name", IMAGE_TABLE)
def test_image_encoders_have_the_printed_millions(name):
    size = asymmetric_grid.IMAGE_ENCODERS[name]
    counted = round(asymmetric_grid.image_parameters(size) / 1e6)
    assert (size.num_heads, counted) == IMAGE_TABLE[name]


@pytest.mark.parametrize("name", TEXT_TABLE)
def test_text_encoders_have_the_printed_millions(name):
    size = asymmetric_grid.TEXT_ENCODERS[name]
    counted = round(asymmetric_grid.text_parameters(size) / 1e6)
    assert (size.num_heads, counted) == TEXT_TABLE[name]


def test_the_pair_of_base_sizes_has_every_parameter_of_clip_vit_b_16():
    # That of OpenAI's checkpoint ViT-B/16.
    assert asymmetric_grid.parameters("asym_base_base") == 149_620_737


def test_every_image_encoder_is_paired_with_every_text_encoder():
    assert len(asymmetric_grid.PAIRS) == 30
    for name, (of_images, of_texts) in asymmetric_grid.PAIRS.items():
        _, image_name, text_name = name.split("_")
        assert asymmetric_grid.IMAGE_ENCODERS[image_name] == of_images
        assert asymmetric_grid.TEXT_ENCODERS[text_name] == of_texts


def test_an_unknown_pair_is_refused():
    message = "no pair 'asym_base_huge'; known: asym_IMAGE_TEXT with IMAGE of atto, "
    with pytest.raises(ValueError, match=message):
        asymmetric_grid.sizes("asym_base_huge")
