import collections
import io

import numpy as np
import pytest
import sklearn.datasets
from PIL import Image

from basic_tf.data import glyph_captions, glyphs, sources
from basic_tf.data import glyph_drawing as drawing


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glyphs")
    names = ["train", "validation", "serif", "phosphor", "remix", "digits", "colors"]
    return {
        name: sources.load(f"tfds:glyphs/tiny:{name}", str(folder)) for name in names
    }


def names_of(examples):
    return [examples.label_names[index] for index in examples.labels]


def test_concepts_are_what_three_families_draw():
    names = drawing.icon_names()
    assert 110 <= len(names) <= 125
    for name in names:
        drawn = sum(name in drawing.icon_glyphs(f) for f in drawing.TRAIN_FAMILIES)
        assert drawn >= 3
    assert not {"facebook", "youtube", "wordpress"} & set(names)


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


def test_held_out_fonts_are_never_trained_on():
    trained = {
        glyph.font
        for groups in [
            drawing.typeface_glyphs(),
            *map(drawing.icon_glyphs, drawing.TRAIN_FAMILIES),
        ]
        for glyphs_of_name in groups.values()
        for glyph in glyphs_of_name
    }
    held_out = {
        glyph.font
        for groups in [
            drawing.typeface_glyphs(held_out=True),
            *map(drawing.icon_glyphs, drawing.HELD_OUT_FAMILIES),
        ]
        for glyphs_of_name in groups.values()
        for glyph in glyphs_of_name
    }
    assert trained and held_out and not trained & held_out


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


def test_a_stretched_figure_changes_its_width_alone():
    glyph = drawing.typeface_glyphs()["letter n"][0]
    ratios = []
    for seed in range(60):
        plain, stretched = (
            drawing.draw(64, glyph, np.random.default_rng(seed), "white", stretch)[0]
            for stretch in (0.0, 0.5)
        )
        (width, height), (new_width, new_height) = map(figure_size, (plain, stretched))
        assert abs(new_height - height) <= 1
        ratios.append(new_width / width)
    assert 1 / 1.6 < min(ratios) < 0.8 and 1.2 < max(ratios) < 1.6


def figure_size(image):
    """Width and height of what differs from the background at the corners."""
    pixels = np.asarray(image, int)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    is_figure = np.abs(pixels - np.median(border, axis=0)).max(-1) > 60
    rows, columns = (np.flatnonzero(is_figure.any(axis)) for axis in (1, 0))
    return np.ptp(columns) + 1, np.ptp(rows) + 1


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("arrow-down-outline", "arrow down"),
        ("heart-fill", "heart"),
        ("bold", "bold"),
        ("star_half-thin", "star half"),
        ("Home", "home"),
    ],
)
def test_names_lose_their_suffix_of_style(raw, name):
    assert drawing.normalize_name(raw) == name


def test_tofu_and_blanks_are_not_drawable():
    font = drawing.typeface_glyphs()["letter a"][0].font
    assert drawing._is_drawable(drawing.Glyph("a", font, "A"))
    assert not drawing._is_drawable(drawing.Glyph("space", font, " "))
    assert not drawing._is_drawable(drawing.Glyph("tofu", font, "\U000f0000"))


def test_the_caption_mixture_is_as_written():
    shares = [share for share, *_ in glyph_captions.MIXTURE.values()]
    assert sum(shares) == pytest.approx(1)
    rng = np.random.default_rng(0)
    captions = [
        glyph_captions.draw_caption("lock", "red", "blue", False, rng)
        for _ in range(4000)
    ]
    bare = np.mean([caption == "lock" for caption in captions])
    silent = np.mean(["lock" not in caption for caption in captions])
    assert bare == pytest.approx(0.30, abs=0.03)
    assert silent == pytest.approx(0.10, abs=0.02)
