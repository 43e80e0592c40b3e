"""Pictures as `data:` URIs, so that a page is one file."""

import base64
import io

import numpy as np
from PIL import Image


def of_content(media_type, content):
    """The URI of a file.

    Args:
        media_type: such as `"image/svg+xml"`.
        content: bytes.
    """
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def of_pixels(pixels):
    """The URI of a PNG file.

    Args:
        pixels: `[H, W, 3]`, or `[H, W]` for gray, float in [0, 1].
    """
    file = io.BytesIO()
    levels = np.uint8(np.rint(np.asarray(pixels) * 255))
    Image.fromarray(levels).save(file, "PNG", optimize=True)
    return of_content("image/png", file.getvalue())
