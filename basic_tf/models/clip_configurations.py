"""CLIP's named models (Radford et al. 2021, section F), as configurations."""

VOCABULARY_SIZE = 49_408  # byte pairs, bytes and two special tokens
HEAD_DIM = 64


def _configuration(embedding_dim, text_width, image_encoder):
    return {
        "embedding_dim": embedding_dim,
        "precision": "float32",
        "image_encoder": image_encoder,
        "text_encoder": {
            "kind": "causal_text_transformer",
            "num_layers": 12,
            "width": text_width,
            "num_heads": text_width // HEAD_DIM,
            "max_length": 77,
            "activation": "quick_gelu",
        },
    }


def _vit(embedding_dim, text_width, num_layers, width, patch_size, image_size=224):
    return _configuration(
        embedding_dim,
        text_width,
        {
            "kind": "vision_transformer",
            "patch_size": patch_size,
            "num_layers": num_layers,
            "width": width,
            "num_heads": width // HEAD_DIM,
            "image_size": image_size,
            "activation": "quick_gelu",
        },
    )


def _resnet(embedding_dim, text_width, depths, width, image_size=224):
    return _configuration(
        embedding_dim,
        text_width,
        {
            "kind": "modified_resnet",
            "depths": depths,
            "width": width,
            "num_heads": width * 32 // HEAD_DIM,  # of the pooled width
            "image_size": image_size,
        },
    )


# As OpenAI trained them, with quick GELU; OpenCLIP's own weights have GELU.
CLIP_CONFIGURATIONS = {
    "vit_b_32": _vit(512, 512, num_layers=12, width=768, patch_size=32),
    "vit_b_16": _vit(512, 512, num_layers=12, width=768, patch_size=16),
    "vit_l_14": _vit(768, 768, num_layers=24, width=1024, patch_size=14),
    "vit_l_14_336": _vit(
        768, 768, num_layers=24, width=1024, patch_size=14, image_size=336
    ),
    "rn50": _resnet(1024, 512, (3, 4, 6, 3), width=64),
    "rn101": _resnet(512, 512, (3, 4, 23, 3), width=64),
    "rn50x4": _resnet(640, 640, (4, 6, 10, 6), width=80, image_size=288),
    "rn50x16": _resnet(768, 768, (6, 8, 18, 8), width=96, image_size=384),
    "rn50x64": _resnet(1024, 1024, (3, 15, 36, 10), width=128, image_size=448),
}
