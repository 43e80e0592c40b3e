"""Descriptions as OpenCLIP writes them; a field without a counterpart is refused."""

import copy
import re

import pytest

from basic_tf.export import open_clip_configuration
from basic_tf.models import (
    clip_configurations,
    dual_encoder,
    pixel_normalization,
    timm_configurations,
    zoo,
)

TEXT = {
    "context_length": 77,
    "vocab_size": 49408,
    "width": 512,
    "heads": 8,
    "layers": 12,
}
# open_clip/model_configs/ViT-B-32-quickgelu.json and RN50-quickgelu.json.
VIT_B_32 = {
    "embed_dim": 512,
    "quick_gelu": True,
    "vision_cfg": {"image_size": 224, "layers": 12, "width": 768, "patch_size": 32},
    "text_cfg": TEXT,
}
RN50 = {
    "embed_dim": 1024,
    "quick_gelu": True,
    "vision_cfg": {
        "image_size": 224,
        "layers": [3, 4, 6, 3],
        "width": 64,
        "patch_size": None,
    },
    "text_cfg": TEXT,
}


COATNET = {
    "embed_dim": 512,
    "custom_text": True,
    "vision_cfg": {
        "timm_model_name": "coatnet_0_224",
        "timm_model_pretrained": False,
        "timm_pool": "",
        "timm_proj": "linear",
        "timm_drop": 0.0,
        "timm_drop_path": None,
        "image_size": 224,
    },
    "text_cfg": TEXT,
}


def changed(section=None, **fields):
    description = copy.deepcopy(VIT_B_32)
    (description[section] if section else description).update(fields)
    return description


@pytest.mark.parametrize(
    ("description", "name"), [(VIT_B_32, "vit_b_32"), (RN50, "rn50")]
)
def test_a_description_gives_the_named_configuration(description, name):
    configuration, vocabulary_size = open_clip_configuration.from_open_clip(description)
    named = copy.deepcopy(clip_configurations.CLIP_CONFIGURATIONS[name])
    if name == "vit_b_32":
        named["image_encoder"]["mlp_ratio"] = 4
    assert configuration == named
    assert vocabulary_size == clip_configurations.VOCABULARY_SIZE


def test_without_quick_gelu_it_is_gelu():
    configuration, _ = open_clip_configuration.from_open_clip(changed(quick_gelu=False))
    assert configuration["image_encoder"]["activation"] == "gelu"
    assert configuration["text_encoder"]["activation"] == "gelu"


def test_the_width_of_heads_and_of_the_hidden_layer_may_be_given():
    # As in ViT-g-14.json.
    description = changed("vision_cfg", width=1408, head_width=88, mlp_ratio=4.3637)
    configuration, _ = open_clip_configuration.from_open_clip(description)
    assert configuration["image_encoder"]["num_heads"] == 16
    assert configuration["image_encoder"]["mlp_ratio"] == 4.3637


def test_a_file_of_a_published_model_has_the_mean_and_deviation_of_the_pixels():
    preprocessing = {
        "mean": [0.5, 0.4, 0.3],
        "std": [0.2, 0.3, 0.4],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    description = {"model_cfg": VIT_B_32, "preprocess_cfg": preprocessing}
    configuration, _ = open_clip_configuration.from_open_clip(description)
    assert configuration["image_encoder"]["mean"] == (0.5, 0.4, 0.3)
    assert configuration["image_encoder"]["std"] == (0.2, 0.3, 0.4)


def test_a_coatnet_of_timm_gives_its_configuration():
    configuration, vocabulary_size = open_clip_configuration.from_open_clip(COATNET)
    assert vocabulary_size == clip_configurations.VOCABULARY_SIZE
    assert configuration["embedding_dim"] == 512
    assert configuration["text_encoder"]["activation"] == "gelu"
    named = timm_configurations.TIMM_COATNETS["coatnet_0_224"]
    assert configuration["image_encoder"] == named | {
        "projection_bias": False,
        "mean": pixel_normalization.CLIP_MEAN,
        "std": pixel_normalization.CLIP_STD,
    }


def changed_coatnet(**fields):
    return COATNET | {"vision_cfg": COATNET["vision_cfg"] | fields}


def test_a_coatnet_takes_image_size_and_bias_of_the_projection():
    description = changed_coatnet(image_size=384, timm_proj_bias=True, timm_pool="avg")
    configuration, _ = open_clip_configuration.from_open_clip(description)
    assert configuration["image_encoder"]["image_size"] == 384
    assert configuration["image_encoder"]["projection_bias"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"timm_model_name": "coatnet_0_rw_224"},
            "timm_model_name 'coatnet_0_rw_224'; only None is known here, and coatnet_",
        ),
        ({"timm_pool": "abs_attn"}, "timm_pool 'abs_attn'; only 'avg' is known here"),
        ({"timm_proj": "mlp"}, "timm_proj 'mlp'; only 'linear' is known here"),
        ({"timm_drop_path": 0.1}, "timm_drop_path 0.1; only None is known here"),
        ({"width": 64}, "vision_cfg has 'width', which is unknown here"),
        ({"image_size": 80}, "image_size 80; this tower takes multiples of 32"),
    ],
)
def test_another_tower_of_timm_is_refused(fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        open_clip_configuration.from_open_clip(changed_coatnet(**fields))


def test_a_field_that_says_what_is_anyway_is_read_over():
    description = changed("text_cfg", pool_type="argmax", proj_bias=False)
    configuration, _ = open_clip_configuration.from_open_clip(description)
    assert configuration == open_clip_configuration.from_open_clip(VIT_B_32)[0]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (
            changed("vision_cfg", pool_type="avg"),
            "vision_cfg has pool_type 'avg'; only 'tok' is known here",
        ),
        (
            changed("vision_cfg", ls_init_value=0.1),
            "vision_cfg has ls_init_value 0.1; only None is known here",
        ),
        (
            changed("vision_cfg", timm_model_name="convnext_base"),
            "vision_cfg has timm_model_name 'convnext_base'; only None is known here",
        ),
        (
            changed("text_cfg", hf_model_name="roberta-base"),
            "text_cfg has hf_model_name 'roberta-base'; only None is known here",
        ),
        (changed("text_cfg", depth=3), "text_cfg has 'depth', which is unknown here"),
        (changed(init_logit_bias=-10), "model_cfg has 'init_logit_bias', which is unk"),
        (changed(custom_text=True), "model_cfg has custom_text True; only False is"),
        ({"embed_dim": 4}, "model_cfg lacks vision_cfg, text_cfg"),
        ({"model_cfg": VIT_B_32, "seed": 3}, "file has 'seed', which is unknown here"),
        (
            {"model_cfg": VIT_B_32, "preprocess_cfg": {"interpolation": "bilinear"}},
            "preprocess_cfg has interpolation 'bilinear'; only 'bicubic' is known here",
        ),
    ],
)
def test_a_field_without_a_counterpart_is_refused(description, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        open_clip_configuration.from_open_clip(description)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (["lock", "home"], "description is no object of JSON but ['lock', 'home']"),
        ({"model_cfg": None}, "model_cfg is no object of JSON but None"),
        (changed(vision_cfg=None), "vision_cfg is no object of JSON but None"),
        (changed(text_cfg=3), "text_cfg is no object of JSON but 3"),
        (
            changed("vision_cfg", image_size=[224, 224]),
            "vision_cfg has image_size [224, 224]; give the side, one number",
        ),
    ],
)
def test_json_of_another_form_is_refused(description, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        open_clip_configuration.from_open_clip(description)


@pytest.mark.parametrize("section", ["vision_cfg", "text_cfg"])
def test_a_field_that_is_missing_is_named(section):
    description = copy.deepcopy(VIT_B_32)
    del description[section]["width"]
    with pytest.raises(ValueError, match=f"{section} lacks width"):
        open_clip_configuration.from_open_clip(description)


def unbuilt(name):
    """A model of OpenAI's without weights."""
    encoders = (zoo.encoder(f"{part}_{name}") for part in ("image", "text"))
    return dual_encoder.DualEncoder(*encoders)


@pytest.mark.parametrize(
    ("name", "expected", "defaults"),
    [
        ("vit_b_32", VIT_B_32, {"head_width": 64, "mlp_ratio": 4}),
        ("rn50", RN50, {"head_width": 64}),
    ],
)
def test_a_model_is_described_as_open_clip_does(name, expected, defaults):
    description = open_clip_configuration.to_open_clip(unbuilt(name))
    vision = expected["vision_cfg"] | defaults
    assert description["model_cfg"] == expected | {"vision_cfg": vision}
    # OPENAI_DATASET_MEAN and _STD of open_clip/constants.py.
    assert description["preprocess_cfg"] == {
        "mean": [0.48145466, 0.4578275, 0.40821073],
        "std": [0.26862954, 0.26130258, 0.27577711],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }


@pytest.mark.parametrize("name", clip_configurations.CLIP_CONFIGURATIONS)
def test_every_named_model_comes_back_from_its_description(name):
    description = open_clip_configuration.to_open_clip(unbuilt(name))
    configuration, vocabulary_size = open_clip_configuration.from_open_clip(description)
    named = clip_configurations.CLIP_CONFIGURATIONS[name]
    for part in ("image_encoder", "text_encoder"):
        # What the description adds are defaults of the class.
        assert configuration[part].items() >= named[part].items()
    assert configuration["embedding_dim"] == named["embedding_dim"]
    assert vocabulary_size == clip_configurations.VOCABULARY_SIZE


def test_a_coatnet_of_timm_comes_back_from_its_description():
    configuration, _ = open_clip_configuration.from_open_clip(changed_coatnet())
    encoder = zoo.encoder(
        "timm_coatnet_0_224",
        **{
            field: configuration["image_encoder"][field]
            for field in ("projection_bias", "mean", "std")
        },
        embedding_dim=configuration["embedding_dim"],
    )
    text = zoo.encoder("text_vit_b_32", activation="gelu")
    model = dual_encoder.DualEncoder(encoder, text)
    description = open_clip_configuration.to_open_clip(model)
    assert description["model_cfg"]["custom_text"]
    again, _ = open_clip_configuration.from_open_clip(description)
    assert again["image_encoder"] == configuration["image_encoder"]


def test_a_model_that_open_clip_has_no_name_for_is_refused():
    image, text = zoo.encoder("image_vit_b_32"), zoo.encoder("text_vit_b_32")
    gelu = zoo.encoder("text_vit_b_32", activation="gelu")
    for encoders, message in (
        ((zoo.encoder("coatnet_0"), gelu), "timm has no CoAtNet of these options"),
        ((text, text), "no name for a CausalTextTransformer; it has for Vision"),
        ((image, image), "no name for a VisionTransformer; it has for CausalText"),
        (
            (zoo.encoder("image_vit_b_32", activation="gelu"), text),
            "no name for activation gelu, quick_gelu; it has for gelu or quick_gelu",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            open_clip_configuration.to_open_clip(dual_encoder.DualEncoder(*encoders))
