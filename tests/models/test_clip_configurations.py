"""The named models have the sizes that OpenAI's have."""

import copy
import math

import keras
import numpy as np
import pytest

from basic_tf.models import clip_configurations
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
    configuration = copy.deepcopy(clip_configurations.CLIP_CONFIGURATIONS[name])
    image, text = configuration["image_encoder"], configuration["text_encoder"]
    # Two blocks of each kind are built, and the second counted for all that follow.
    copies = {"text_encoder/block1/": text["num_layers"] - 1}
    text["num_layers"] = 2
    if "depths" in image:
        for stage, depth in enumerate(image["depths"], start=1):
            copies[f"image_encoder/stage{stage}_block1/"] = depth - 1
        image["depths"] = (2, 2, 2, 2)
    else:
        copies["image_encoder/block1/"] = image["num_layers"] - 1
        image["num_layers"] = 2
    with keras.StatelessScope():  # shapes only: no weight is made
        model = clip_configurations.dual_encoder(configuration)
    counts = {"image_encoder/": 0, "text_encoder/": 0}
    for variable in model.trainable_variables:
        times = [n for part, n in copies.items() if part in variable.path]
        for side in counts:
            if side in variable.path:
                counts[side] += math.prod(variable.shape) * (times or [1])[0]
    image_count, text_count = counts.values()
    assert round(image_count / 1e6, 2) == image_millions
    assert round(text_count / 1e6, 2) == text_millions
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
    model = clip_configurations.dual_encoder(
        {"embedding_dim": 6, "image_encoder": image, "text_encoder": text},
        vocabulary_size=10,
    )
    assert model.encode_image(random_images(3, 32, 32, 3)).shape == (3, 6)
    assert model.encode_text(np.ones((2, 5), "int32")).shape == (2, 6)
    assert image["kind"] == kind  # the configuration is left as it was


def test_an_unknown_kind_is_refused():
    configuration = {
        "embedding_dim": 6,
        "image_encoder": {"kind": "convnext"},
        "text_encoder": {"kind": "causal_text_transformer"},
    }
    with pytest.raises(ValueError, match="no encoders 'convnext' and 'causal_text_tr"):
        clip_configurations.dual_encoder(configuration)
