"""OpenCLIP's JSON of a model, as a configuration of ours, and the other way round."""

from basic_tf.models import clip_configurations, pixel_normalization
from basic_tf.models.causal_text_transformer import CausalTextTransformer
from basic_tf.models.coatnet import CoAtNet
from basic_tf.models.modified_resnet import ModifiedResNet
from basic_tf.models.timm_configurations import TIMM_COATNETS, TOTAL_STRIDE
from basic_tf.models.vision_transformer import VisionTransformer

# Fields that change the network in ways that ours does not know: the only value that is
# read. Those of other timm and Hugging Face towers are in none of these tables.
_FIXED_VISION = {
    "ls_init_value": None,
    "patch_dropout": 0.0,
    "attentional_pool": False,
    "no_ln_pre": False,
    "pos_embed_type": "learnable",
    "final_ln_after_pool": False,
    "pool_type": "tok",
    "output_tokens": False,
    "act_kwargs": None,
    "norm_kwargs": None,
    "timm_model_name": None,
}
_FIXED_TIMM = {
    "timm_pool": "avg",
    "timm_proj": "linear",
    "timm_drop": 0.0,
    "timm_drop_path": None,
}
_FIXED_TEXT = {
    "mlp_ratio": 4.0,
    "ls_init_value": None,
    "embed_cls": False,
    "pad_id": 0,
    "no_causal_mask": False,
    "final_ln_after_pool": False,
    "pool_type": "argmax",
    "proj_bias": False,
    "proj_type": "linear",
    "output_tokens": False,
    "act_kwargs": None,
    "norm_kwargs": None,
    "hf_model_name": None,
    "hf_tokenizer_name": None,
}
_FIXED_PREPROCESSING = {
    "mode": "RGB",
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "fill_color": 0,
}
_REQUIRED = {
    "model_cfg": ("embed_dim", "vision_cfg", "text_cfg"),
    "vision_cfg": ("layers", "width", "image_size", "patch_size"),
    "text_cfg": ("context_length", "vocab_size", "width", "heads", "layers"),
    "preprocess_cfg": (),
}


def from_open_clip(description):
    """The configuration of an OpenCLIP model.

    Args:
        description: dict of a file of `open_clip/model_configs`, or of an
            `open_clip_config.json`, which holds one under `model_cfg`, and the mean and
            deviation of the pixels.

    Returns:
        `(configuration, vocabulary_size)` for `zoo.build`.

    Raises:
        ValueError: naming a field that is missing, unknown, or has a value that these
            encoders have no counterpart of.
    """
    preprocessing = {}
    _check_object("description", description)
    if "model_cfg" in description:
        _check("file", description, {"preprocess_cfg"}, {}, required=("model_cfg",))
        preprocessing = description.get("preprocess_cfg", {})
        description = description["model_cfg"]
        _check_object("model_cfg", description)
    # The images have the size that the encoder takes.
    optional = {"mean", "std", "size"}
    _check("preprocess_cfg", preprocessing, optional, _FIXED_PREPROCESSING)
    vision = description.get("vision_cfg", {})
    _check_object("vision_cfg", vision)
    timm = vision.get("timm_model_name") is not None
    # Beside a timm tower it says no more than how the text encoder's names begin.
    optional = {"quick_gelu", "custom_text"} if timm else {"quick_gelu"}
    _check("model_cfg", description, optional, {"custom_text": False})
    text = description["text_cfg"]
    _check("text_cfg", text, set(), _FIXED_TEXT)
    activation = "quick_gelu" if description.get("quick_gelu") else "gelu"
    image_encoder = _coatnet(vision) if timm else _image_encoder(vision, activation)
    image_encoder |= {
        name: tuple(preprocessing[name])
        for name in ("mean", "std")
        if name in preprocessing
    }
    configuration = {
        "embedding_dim": description["embed_dim"],
        "precision": "float32",
        "image_encoder": image_encoder,
        "text_encoder": {
            "kind": "causal_text_transformer",
            "num_layers": text["layers"],
            "width": text["width"],
            "num_heads": text["heads"],
            "max_length": text["context_length"],
            "activation": activation,
        },
    }
    return configuration, text["vocab_size"]


def _coatnet(vision):
    """Of a tower of timm's; an empty `timm_pool` leaves timm's, which is the mean."""
    name = vision["timm_model_name"]
    if name not in TIMM_COATNETS:
        raise ValueError(
            f"vision_cfg has timm_model_name {name!r}; only None is known here, and "
            f"{', '.join(TIMM_COATNETS)}"
        )
    vision = vision | {"timm_pool": vision.get("timm_pool") or "avg"}
    optional = {"timm_proj_bias", "timm_model_pretrained"}
    required = "timm_model_name", "image_size"
    _check("vision_cfg", vision, optional, _FIXED_TIMM, required)
    if vision["image_size"] % TOTAL_STRIDE:
        raise ValueError(
            f"vision_cfg has image_size {vision['image_size']}; this tower takes "
            f"multiples of {TOTAL_STRIDE}"
        )
    return TIMM_COATNETS[name] | {
        "image_size": vision["image_size"],
        "projection_bias": vision.get("timm_proj_bias", False),
        # What OpenCLIP takes off where the file does not say.
        "mean": pixel_normalization.CLIP_MEAN,
        "std": pixel_normalization.CLIP_STD,
    }


def to_open_clip(model):
    """OpenCLIP's description of a model of CLIP.

    Args:
        model: `DualEncoder` of a `VisionTransformer`, a `ModifiedResNet` or one of
            `TIMM_COATNETS`, and a `CausalTextTransformer`.

    Returns:
        The content of an `open_clip_config.json`, which `from_open_clip` reads.

    Raises:
        ValueError: for other encoders or activations, which OpenCLIP has no name for.
    """
    image, text = model.image_encoder, model.text_encoder
    known = (VisionTransformer, ModifiedResNet, CoAtNet), (CausalTextTransformer,)
    for encoder, types in zip((image, text), known, strict=True):
        if type(encoder) not in types:
            raise ValueError(
                f"OpenCLIP has no name for a {type(encoder).__name__}; it has for "
                f"{', '.join(each.__name__ for each in types)}"
            )
    activations = {text.activation, getattr(image, "activation", text.activation)}
    if activations not in ({"gelu"}, {"quick_gelu"}):
        raise ValueError(
            f"OpenCLIP has no name for activation {', '.join(sorted(activations))}; it "
            "has for gelu or quick_gelu in both encoders"
        )
    return {
        "model_cfg": {
            "embed_dim": text.embedding_dim,
            "quick_gelu": activations == {"quick_gelu"},
            **({"custom_text": True} if isinstance(image, CoAtNet) else {}),
            "vision_cfg": _vision(image),
            "text_cfg": {
                "context_length": text.max_length,
                "vocab_size": text.vocabulary_size,
                "width": text.width,
                "heads": text.num_heads,
                "layers": text.num_layers,
            },
        },
        "preprocess_cfg": {
            "mean": list(image.mean),
            "std": list(image.std),
            "interpolation": "bicubic",
            "resize_mode": "shortest",
        },
    }


def _vision(encoder):
    if isinstance(encoder, CoAtNet):
        return _timm_vision(encoder)
    shared = {"image_size": encoder.image_size, "width": encoder.width}
    if isinstance(encoder, ModifiedResNet):
        return shared | {
            "layers": list(encoder.depths),
            "patch_size": None,
            "head_width": encoder.width * 32 // encoder.num_heads,
        }
    return shared | {
        "layers": encoder.num_layers,
        "patch_size": encoder.patch_size,
        "head_width": encoder.width // encoder.num_heads,
        "mlp_ratio": encoder.mlp_ratio,
    }


def _timm_vision(encoder):
    config = encoder.get_config() | {"kind": "coatnet"}
    for name, options in TIMM_COATNETS.items():
        options = options | {"image_size": encoder.image_size}
        if all(config[field] == value for field, value in options.items()):
            return {
                "timm_model_name": name,
                "timm_model_pretrained": False,
                "timm_pool": "",
                "timm_proj": "linear",
                "timm_proj_bias": encoder.projection_bias,
                "image_size": encoder.image_size,
            }
    raise ValueError(
        f"timm has no CoAtNet of these options; it has {', '.join(TIMM_COATNETS)}"
    )


def _image_encoder(vision, activation):
    _check("vision_cfg", vision, {"head_width", "mlp_ratio"}, _FIXED_VISION)
    head_width = vision.get("head_width", clip_configurations.HEAD_DIM)
    if isinstance(vision["layers"], list):
        return {
            "kind": "modified_resnet",
            "depths": tuple(vision["layers"]),
            "width": vision["width"],
            "num_heads": vision["width"] * 32 // head_width,
            "image_size": vision["image_size"],
        }
    return {
        "kind": "vision_transformer",
        "patch_size": vision["patch_size"],
        "num_layers": vision["layers"],
        "width": vision["width"],
        "num_heads": vision["width"] // head_width,
        "image_size": vision["image_size"],
        "mlp_ratio": vision.get("mlp_ratio", 4),
        "activation": activation,
    }


def _check(name, fields, optional, fixed, required=None):
    """Refuses fields that are missing, unknown, or not as in `fixed`."""
    _check_object(name, fields)
    required = _REQUIRED[name] if required is None else required
    missing = [field for field in required if field not in fields]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)}")
    for field, value in fields.items():
        if field in required or field in optional:
            continue
        if field not in fixed:
            raise ValueError(
                f"{name} has {field!r}, which is unknown here: this is no CLIP of "
                "vision transformer, ResNet or timm's CoAtNet and causal text "
                "transformer"
            )
        if value != fixed[field]:
            raise ValueError(
                f"{name} has {field} {value!r}; only {fixed[field]!r} is known here"
            )
    size = fields.get("image_size", 0)
    if not isinstance(size, int):
        raise ValueError(f"{name} has image_size {size!r}; give the side, one number")


def _check_object(name, fields):
    if not isinstance(fields, dict):
        raise ValueError(f"{name} is no object of JSON but {fields!r}")
