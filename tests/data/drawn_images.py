"""Gray images to compare: drawn glyphs, and what copies of images go through."""

import numpy as np
from PIL import Image

from basic_tf.data import glyph_drawing


def draw_glyphs(count, seed, held_out=False, size=32):
    """`[count, size, size]` float32 in [0, 1]."""
    rng = np.random.default_rng(seed)
    by_name = glyph_drawing.typeface_glyphs(held_out)
    names = sorted(by_name)
    images = []
    for _ in range(count):
        glyphs = by_name[names[rng.integers(len(names))]]
        glyph = glyphs[rng.integers(len(glyphs))]
        image, _, _ = glyph_drawing.draw(size, glyph, rng)
        images.append(np.asarray(image.convert("L"), np.float32) / 255)
    return np.stack(images)


def change(images, seed):
    """Shifts, noise, brightness, contrast and lower resolution, in turn."""
    rng = np.random.default_rng(seed)
    changed = []
    for index, image in enumerate(images):
        match index % 5:
            case 0:
                image = np.roll(image, rng.integers(-2, 3, 2), (0, 1))
            case 1:
                image = image + rng.normal(0, rng.uniform(0.01, 0.15), image.shape)
            case 2:
                image = image * rng.uniform(0.5, 1.2) + rng.uniform(-0.2, 0.2)
            case 3:
                image = (image - 0.5) * rng.uniform(0.3, 2) + 0.5
            case 4:
                coarse = Image.fromarray(image).resize((16, 16), Image.Resampling.BOX)
                image = np.asarray(coarse.resize(image.shape, Image.Resampling.BICUBIC))
        changed.append(np.clip(image, 0, 1))
    return np.stack(changed).astype(np.float32)
