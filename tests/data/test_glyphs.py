import collections
import io

import numpy as np
import pytest
import sklearn.datasets
from PIL import Image

from basic_tf.data import glyph_drawing as drawing
from basic_tf.data import glyphs, sources


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glyphs")
    names = ["train", "validation", "serif", "phosphor", "remix", "digits", "colors"]
    return {
        name: sources.load(f"tfds:glyphs/tiny:{name}", str(folder)) for name in names
    }


def names_of(examples):
    return [examples.label_names[index] for index in examples.labels]


def test_icons_are_rendered_equally_often_and_characters_twice_as_often(splits):
    counts = collections.Counter(names_of(splits["train"]))
    assert counts == dict.fromkeys(drawing.icon_names(), 3) | dict.fromkeys(
        drawing.CHARACTERS, 6
    )


def test_held_out_splits_hold_the_names_they_share_with_training(splits):
    trained = set(names_of(splits["train"]))
    for split, at_least in (("phosphor", 70), ("remix", 76), ("serif", 36)):
        names = set(names_of(splits[split]))
        assert names <= trained
        assert len(names) >= at_least


def test_handwritten_digits_are_scikit_learns(splits):
    counts = collections.Counter(names_of(splits["digits"]))
    expected = np.bincount(sklearn.datasets.load_digits().target)
    assert [counts[f"digit {word}"] for word in drawing.DIGITS] == expected.tolist()


def test_a_color_label_is_the_color_of_the_figure(splits):
    """The figure is what differs from the background at the image's corners."""
    examples = splits["colors"]
    assert len(set(names_of(examples))) == 12
    right = 0
    for file, name in zip(examples.images, names_of(examples), strict=True):
        pixels = np.asarray(Image.open(io.BytesIO(file)).convert("RGB"), float)
        border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        background = np.median(border, axis=0)
        distance = np.linalg.norm(pixels - background, axis=-1)
        figure = pixels[distance >= 0.9 * distance.max()].mean(axis=0)
        nearest = min(
            drawing.COLORS, key=lambda c: np.linalg.norm(figure - drawing.COLORS[c])
        )
        right += nearest == name
    assert right >= 0.85 * len(examples)  # thin figures mix with their background


def test_an_example_depends_on_its_key_alone():
    glyph = drawing.icon_glyphs("elusive")["home"][0]
    builder_free = [
        drawing.draw(32, glyph, glyphs._generator("some key"))[0].tobytes()
        for _ in range(2)
    ]
    assert builder_free[0] == builder_free[1]
    other = drawing.draw(32, glyph, glyphs._generator("another key"))[0].tobytes()
    assert other != builder_free[0]
