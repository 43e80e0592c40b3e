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

    Returns:
        `[B, image_size, image_size, 3]`, of known sides even where those of `images`
        are not; images of another size then fail when the graph runs (those of a single
        pixel are spread).

    Raises:
        ValueError: for images that are known to have another size.
    """
    height, width = images.shape[1:3]
    if not {height, width} <= {image_size, None}:
        raise ValueError(
            f"images of {height} x {width} pixels; this encoder takes "
            f"{image_size} x {image_size}"
        )
    mean, std = (ops.convert_to_tensor(values, dtype) for values in (mean, std))
    if None in (height, width):
        mean = ops.broadcast_to(mean, (image_size, image_size, 3))
    return (ops.cast(images, dtype) - mean) / std
