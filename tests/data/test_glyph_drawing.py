import numpy as np
import pytest

from basic_tf.data import glyph_drawing as drawing


def test_concepts_are_what_three_families_draw():
    names = drawing.icon_names()
    assert 110 <= len(names) <= 125
    for name in names:
        drawn = sum(name in drawing.icon_glyphs(f) for f in drawing.TRAIN_FAMILIES)
        assert drawn >= 3
    assert not {"facebook", "youtube", "wordpress"} & set(names)


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
