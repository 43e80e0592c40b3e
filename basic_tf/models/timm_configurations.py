"""timm's CoAtNets of the sizes of the CoAtNet paper, as configurations of encoders.

What their blocks have in other ways than the paper's is `DEFINITION`. The networks that
timm calls `coatnet_N_rw_224` are of other blocks (their attention has the width of its
input, for one) and are none of these.
"""

DEFINITION = {
    "strides": (2, 2, 2, 2, 2),
    "stride_on": "depthwise",
    "expansion_base": "output",
    "squeeze_base": "output",
    "activation": "gelu",
    "squeeze_activation": "silu",
    "pooling": "average",
    "padding": "symmetric",
    "stem_bias": False,
    "batch_norm_momentum": 0.9,
    "batch_norm_epsilon": 1e-5,
    "layer_norm_epsilon": 1e-6,
}
TOTAL_STRIDE = 32


def _coatnet(depths, widths):
    return DEFINITION | {
        "kind": "coatnet",
        "depths": depths,
        "widths": widths,
        "blocks": ("mbconv", "mbconv", "transformer", "transformer"),
        "image_size": 224,
        "head_dim": 32,
        "head": ("mean", "norm", "tanh"),
    }


TIMM_COATNETS = {
    "coatnet_0_224": _coatnet((2, 2, 3, 5, 2), (64, 96, 192, 384, 768)),
    "coatnet_1_224": _coatnet((2, 2, 6, 14, 2), (64, 96, 192, 384, 768)),
    "coatnet_2_224": _coatnet((2, 2, 6, 14, 2), (128, 128, 256, 512, 1024)),
    "coatnet_3_224": _coatnet((2, 2, 6, 14, 2), (192, 192, 384, 768, 1536)),
    "coatnet_4_224": _coatnet((2, 2, 12, 28, 2), (192, 192, 384, 768, 1536)),
    "coatnet_5_224": _coatnet((2, 2, 12, 28, 2), (192, 256, 512, 1280, 2048)),
}
