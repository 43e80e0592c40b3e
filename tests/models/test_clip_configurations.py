"""The named models have the sizes that OpenAI's have."""

import numpy as np
import pytest

from basic_tf.models import clip_configurations, zoo
from tests.models.model_test_case import random_images

# Millions of parameters of the image and the text side, OpenCLIP's model_profile.csv;
# the log-scale is in neither. Then those of the whole, where `clip.load` counted them.
PARAMETERS = {
    "vit_b_32": (87.85, 63.43, 151_277_313),
    "vit_b_16": (86.19, 63.43, None),
    "vit_l_14": (303.97, 123.65, 427_616_513),
    "vit_l_14_336": (304.29, 123.65, 427_944_193),
    "rn50": (38.32, 63.69, 102_007_137),
    "rn101": (56.26, 63.43, 119_688_033),
    "rn50x4": (87.14, 91.16, 178_300_601),
    "rn50x16": (167.33, 123.65, None),
    "rn50x64": (420.38, 202.88, None),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_named_model_has_as_many_parameters_as_its_peer(name):
    image_millions, text_millions, total = PARAMETERS[name]
    image_count, text_count = (
        zoo.describe(f"{part}_{name}").parameters for part in ("image", "text")
    )
    assert round(image_count / 1e6, 2) == image_millions
    assert round(text_count / 1e6, 2) == text_millions
    assert zoo.describe(name).parameters == image_count + text_count + 1
    assert total in (None, image_count + text_count + 1)


def test_every_name_is_tested():
    assert set(PARAMETERS) == set(clip_configurations.CLIP_CONFIGURATIONS)


SMALL = {
    "vision_transformer": {"patch_size": 4, "num_layers": 1, "width": 8},
    "modified_resnet": {"depths": (1, 1, 1, 1), "width": 2},
}


@pytest.mark.parametrize("kind", SMALL)
def test_both_kinds_embed_images_and_texts_in_one_space(kind):
    image = {"kind": kind, "num_heads": 2, "image_size": 32, **SMALL[kind]}
    text = {
        "kind": "causal_text_transformer",
        "num_layers": 1,
        "width": 8,
        "num_heads": 2,
        "max_length": 5,
    }
    configuration = {
        "embedding_dim": 6,
        "precision": "float32",
        "image_encoder": image,
        "text_encoder": text,
    }
    model = zoo.build(configuration, vocabulary_size=10)
    assert model.encode_image(random_images(3, 32, 32, 3)).shape == (3, 6)
    assert model.encode_text(np.ones((2, 5), "int32")).shape == (2, 6)
    assert image["kind"] == kind  # the configuration is left as it was
