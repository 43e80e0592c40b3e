"""BASIC's models (Pham et al. 2021, table 5) and their encoders, as configurations."""


def _coatnet(depths, widths, head_dim=32):
    """A row of CoAtNet's Table 3: stem, MBConv stages, two transformer stages.

    CoAtNet-6 and 7 have both kinds of block in the third stage: a stage each here. Its
    stride is the transformers' (ours): then CoAtNet-7 has the 496B multiply-adds of
    BASIC's Table 5 at 224 pixels. CoAtNet-6 has 1.34B parameters, 9 % less than the
    1.47B of the CoAtNet paper, whose Table 3 does not say what it has beside this.
    """
    early = len(depths) - 3
    return {
        "kind": "coatnet",
        "depths": depths,
        "widths": widths,
        "strides": (2, 2, 2) + (1,) * (early - 2) + (2, 2),
        "blocks": ("mbconv",) * early + ("transformer",) * 2,
        "image_size": 224,
        "head_dim": head_dim,
        "stride_on": "expand",
        "expansion_base": "output",
        "squeeze_base": "output",
        "activation": "gelu",
    }


def _text(num_layers, width):
    """A text encoder of BASIC's Table 5."""
    return {
        "kind": "text_transformer",
        "num_layers": num_layers,
        "width": width,
        "num_heads": width // 64,
        "max_length": 64,
        "activation": "gelu",
    }


COATNETS = {
    "coatnet_0": _coatnet((2, 2, 3, 5, 2), (64, 96, 192, 384, 768)),
    "coatnet_1": _coatnet((2, 2, 6, 14, 2), (64, 96, 192, 384, 768)),
    "coatnet_2": _coatnet((2, 2, 6, 14, 2), (128, 128, 256, 512, 1024)),
    "coatnet_3": _coatnet((2, 2, 6, 14, 2), (192, 192, 384, 768, 1536)),
    "coatnet_4": _coatnet((2, 2, 12, 28, 2), (192, 192, 384, 768, 1536)),
    "coatnet_5": _coatnet((2, 2, 12, 28, 2), (192, 256, 512, 1280, 2048), 64),
    "coatnet_6": _coatnet((2, 2, 4, 8, 42, 2), (192, 192, 384, 768, 1536, 2048), 128),
    "coatnet_7": _coatnet((2, 2, 4, 8, 42, 2), (192, 256, 512, 1024, 2048, 3072), 128),
}

TEXT_TRANSFORMERS = {
    "text_basic_s": _text(num_layers=6, width=1024),
    "text_basic_m": _text(num_layers=12, width=1024),
    "text_basic_l": _text(num_layers=12, width=2048),
}


def _basic(coatnet, text_transformer):
    """A model of BASIC's Table 5; D is the width of the text encoder (ours)."""
    return {
        "embedding_dim": TEXT_TRANSFORMERS[text_transformer]["width"],
        "precision": "float32",
        "image_encoder": COATNETS[coatnet],
        "text_encoder": TEXT_TRANSFORMERS[text_transformer],
    }


BASIC_CONFIGURATIONS = {
    "basic_s": _basic("coatnet_0", "text_basic_s"),
    "basic_m": _basic("coatnet_3", "text_basic_m"),
    "basic_l": _basic("coatnet_7", "text_basic_l"),
    # For 32 x 32 images: the stages from the third on see 4 x 4 positions. ReLU, which
    # costs a CPU less than GELU.
    "basic_nano": {
        "embedding_dim": 128,
        "precision": "float32",
        "image_encoder": {
            "kind": "coatnet",
            "depths": (2, 1, 1, 2, 1),
            "widths": (16, 64, 96, 128, 128),
            "strides": (2, 2, 2, 1, 1),
            "blocks": ("mbconv", "mbconv", "mbconv", "transformer"),
            "image_size": 32,
            "head_dim": 32,
            "stride_on": "depthwise",
            "expansion_base": "input",
            "squeeze_base": "input",
            "activation": "relu",
        },
        "text_encoder": {
            "kind": "text_transformer",
            "num_layers": 2,
            "width": 128,
            "num_heads": 4,
            "max_length": 16,
            "activation": "relu",
        },
    },
}
