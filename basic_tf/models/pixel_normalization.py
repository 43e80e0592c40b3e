"""How CLIP's image encoders take pixels: of one size, mean and deviation taken off."""

from keras import ops

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


def normalize_pixels(images, image_size, mean, std, dtype):
    """`(images - mean) / std` by channel, for `[B, image_size, image_size, 3]`.

    Args:
        images: in [0, 1].
        image_size: the side that the encoder has positions for.
        mean, std: one value a channel.
        dtype: of the result.

    Raises:
        ValueError: for images of another size.
    """
    height, width = images.shape[1:3]
    if not {height, width} <= {image_size, None}:
        raise ValueError(
            f"images of {height} x {width} pixels; this encoder takes "
            f"{image_size} x {image_size}"
        )
    mean, std = (ops.convert_to_tensor(values, dtype) for values in (mean, std))
    return (ops.cast(images, dtype) - mean) / std
