"""CLIP encoders of 5 image and 6 text sizes in every pair, to see which pairs balance.

The sizes are those of the 2026 study of text encoders that are too big for their image
encoder; each pair has a name such as `asym_base_tiny`.
"""

from basic_tf.models.clip_configurations import HEAD_DIM

EMBEDDING_DIM = 512


def _transformer(num_layers, width, **options):
    return {
        "num_layers": num_layers,
        "width": width,
        "num_heads": width // HEAD_DIM,
        "activation": "gelu",
    } | options


def _image(num_layers, width):
    return _transformer(
        num_layers, width, kind="vision_transformer", patch_size=16, image_size=224
    )


def _text(num_layers, width):
    return _transformer(
        num_layers, width, kind="causal_text_transformer", max_length=77
    )


IMAGE_ENCODERS = {
    "atto": _image(12, 256),
    "tiny": _image(10, 640),
    "base": _image(12, 768),
    "giant": _image(20, 896),
    "colossal": _image(22, 1152),
}

TEXT_ENCODERS = {
    "femto": _text(1, 64),
    "atto": _text(3, 128),
    "nano": _text(6, 256),
    "tiny": _text(10, 384),
    "base": _text(12, 512),
    "giant": _text(15, 768),
}

CONFIGURATIONS = {
    f"asym_{of_images}_{of_texts}": {
        "embedding_dim": EMBEDDING_DIM,
        "precision": "float32",
        "image_encoder": image_encoder,
        "text_encoder": text_encoder,
    }
    for of_images, image_encoder in IMAGE_ENCODERS.items()
    for of_texts, text_encoder in TEXT_ENCODERS.items()
}
