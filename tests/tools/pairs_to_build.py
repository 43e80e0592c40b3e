"""A source with something for each filter, for tests of what builds data sets."""

import numpy as np
import tensorflow as tf
from PIL import Image

from basic_tf.data import tfrecord_source
from tests.data import drawn_images
from tests.data.image_files import encode
from tests.data.source_files import cut_jpeg

NUM_GOOD = 30


def noise(number, side=16):
    """The content of an image file; those of other numbers are other images."""
    rng = np.random.default_rng(number)
    pixels = rng.integers(0, 256, (side, side, 3), np.uint8)
    return encode(Image.fromarray(pixels), "PNG")


def good():
    """`{key: (image, texts, labels)}` of the examples that no filter drops."""
    return {
        f"good {n}": (
            noise(n),
            [f"a cat {n}", f"a pet {n}"][: 1 + n % 2],
            [[], ["cat"], ["pet", "cat"]][n % 3],
        )
        for n in range(NUM_GOOD)
    }


def evaluation_image():
    """`[32, 32]` uint8, of which the source has a noisy copy."""
    return np.uint8(255 * drawn_images.draw_glyphs(1, 1, held_out=True)[0])


def write(folder):
    """Writes the source in two files; `(source, evaluation source)`."""
    examples = good()
    copied = evaluation_image().astype(int)
    copied += np.random.default_rng(0).integers(-5, 6, (32, 32))
    copied = Image.fromarray(np.uint8(np.clip(copied, 0, 255)))
    examples |= {
        "repeated pair": examples["good 0"],
        "repeated image": (noise(1), ["a dog"], []),
        "small": (noise(100, 7), ["a dog"], []),
        "long": (noise(101), ["a b c d e f g h i"], []),
        "half long": (noise(102), ["a b c d e f g h i", "a dog"], []),
        "copied": (encode(copied, "PNG"), ["a dog"], []),
        "broken": (cut_jpeg(), ["a dog"], []),
    }
    records = [
        tfrecord_source.to_record(image, texts, labels, key)
        for key, (image, texts, labels) in examples.items()
    ]
    for number in range(2):
        with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as file:
            for record in records[number::2]:
                file.write(record)
    evaluation = folder / "evaluation" / "digit"
    evaluation.mkdir(parents=True)
    Image.fromarray(evaluation_image()).save(evaluation / "0.png")
    return f"tfrecord:{folder}/{{0,1}}.tfrecord", f"folder:{folder}/evaluation"


def contents(folder):
    """`{name: bytes}` of a folder, which has no folders inside."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
