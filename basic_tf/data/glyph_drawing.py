"""What the `glyphs` data set can draw, and how it draws it.

Typefaces come with matplotlib, icon families with the QtAwesome distribution (its font
and charmap files are read; the package itself, which wants Qt, is not imported).
"""

import collections
import dataclasses
import functools
import importlib.metadata
import itertools
import json
import math
import pathlib

import matplotlib
from absl import logging
from PIL import Image, ImageDraw, ImageFont

COLORS = {
    "black": (15, 15, 15),
    "white": (245, 245, 245),
    "gray": (128, 128, 128),
    "red": (215, 25, 30),
    "orange": (250, 130, 10),
    "yellow": (250, 225, 40),
    "green": (30, 150, 50),
    "cyan": (40, 210, 225),
    "blue": (30, 60, 210),
    "purple": (125, 35, 165),
    "pink": (250, 145, 195),
    "brown": (115, 65, 25),
}
COLOR_JITTER = 12  # uniform, each channel
MIN_COLOR_DISTANCE = 140  # Euclidean RGB distance between figure and background

DIGITS = (
    *("zero", "one", "two", "three", "four"),
    *("five", "six", "seven", "eight", "nine"),
)
CHARACTERS = {f"digit {word}": str(i) for i, word in enumerate(DIGITS)} | {
    f"letter {letter.lower()}": letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
}

# Files of matplotlib's `fonts/ttf`; the DejaVu Serif faces are held out.
TRAIN_TYPEFACES = (
    *("DejaVuSans", "DejaVuSans-Bold"),
    *("DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    *("DejaVuSansMono", "DejaVuSansMono-Bold"),
    *("DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique"),
    *("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta"),
    *("cmr10", "cmb10", "cmss10", "cmtt10", "cmti10"),
)
SERIF_TYPEFACES = (
    *("DejaVuSerif", "DejaVuSerif-Bold"),
    *("DejaVuSerif-Italic", "DejaVuSerif-BoldItalic"),
)

# Icon family -> prefixes of its charmap files in QtAwesome. Brand marks are left out:
# they name companies, not things.
TRAIN_FAMILIES = {
    "material": ("materialdesignicons5-webfont", "materialdesignicons6-webfont"),
    "fontawesome": (
        "fontawesome5-regular-webfont",
        "fontawesome5-solid-webfont",
        "fontawesome6-regular-webfont",
        "fontawesome6-solid-webfont",
    ),
    "elusive": ("elusiveicons-webfont",),
    "codicon": ("codicon",),
}
HELD_OUT_FAMILIES = {"phosphor": ("phosphor",), "remix": ("remixicon",)}
STYLE_SUFFIXES = ("thin", "light", "bold", "fill", "line", "outline")
MIN_FAMILIES = 3  # a concept is a name that so many training families draw


@dataclasses.dataclass(frozen=True)
class Glyph:
    """One drawable sign: a code point of a font file, and the name it stands for."""

    name: str
    font: str
    character: str


@functools.lru_cache(maxsize=1024)
def _font(path, size):
    return ImageFont.truetype(path, size)


@functools.cache
def _is_drawable(glyph):
    """False for a blank glyph and for the font's "no such character" box (tofu)."""
    font = _font(glyph.font, 32)
    mask = font.getmask(glyph.character)
    return bool(mask.getbbox()) and bytes(mask) != bytes(font.getmask("\U0010fffe"))


def normalize_name(name):
    """`"arrow-down-outline"` -> `"arrow down"`: words, without suffixes of style."""
    words = name.replace("_", "-").split("-")
    while len(words) > 1 and words[-1] in STYLE_SUFFIXES:
        words.pop()
    return " ".join(words).lower()


def _family_glyphs(prefixes):
    """All glyphs of an icon family, in the order of its charmaps."""
    folder = pathlib.Path(
        importlib.metadata.distribution("QtAwesome").locate_file("qtawesome/fonts")
    )
    glyphs = []
    for prefix in prefixes:
        (charmap,) = folder.glob(f"{prefix}-charmap-*.json")
        font = folder / (charmap.stem.replace("-charmap", "") + ".ttf")
        for name, code_point in json.loads(charmap.read_text()).items():
            character = chr(int(code_point, 16))  # "0xf101" and "f101" both occur
            glyphs.append(Glyph(normalize_name(name), str(font), character))
    return glyphs


def _drawable(glyphs, where):
    """Leaves out what a font does not draw, and says how many those were."""
    kept = [glyph for glyph in glyphs if _is_drawable(glyph)]
    if len(kept) < len(glyphs):
        logging.info(
            "glyphs: %d of %d glyphs of %s are blank or tofu and were skipped",
            len(glyphs) - len(kept), len(glyphs), where,
        )  # fmt: skip
    return kept


def _by_name(glyphs):
    groups = collections.defaultdict(list)
    for glyph in glyphs:
        groups[glyph.name].append(glyph)
    return dict(groups)


@functools.cache
def typeface_glyphs(held_out=False):
    """Characters in the training typefaces or the held-out ones: `{name: [Glyph]}`."""
    folder = pathlib.Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    glyphs = [
        Glyph(name, str(folder / f"{typeface}.ttf"), character)
        for name, character in CHARACTERS.items()
        for typeface in (SERIF_TYPEFACES if held_out else TRAIN_TYPEFACES)
    ]
    return _by_name(_drawable(glyphs, "the typefaces"))


@functools.cache
def icon_glyphs(family):
    """Every icon of a family of `TRAIN_FAMILIES` or `HELD_OUT_FAMILIES`, by name."""
    prefixes = {**TRAIN_FAMILIES, **HELD_OUT_FAMILIES}[family]
    return _by_name(_drawable(_family_glyphs(prefixes), family))


@functools.cache
def icon_names(all_icons=False):
    """Sorted names of training icons: those of `MIN_FAMILIES` families, or all."""
    counts = collections.Counter(
        name for family in TRAIN_FAMILIES for name in icon_glyphs(family)
    )
    needed = 1 if all_icons else MIN_FAMILIES
    return sorted(name for name, count in counts.items() if count >= needed)


def draw(image_size, glyph, rng, color=None, max_stretch=0.0):
    """Draws a glyph in random colours, size and offset.

    Args:
        image_size: side of the square image in pixels.
        glyph: a `Glyph`, or an 8-bit grayscale PIL image whose bright pixels are
            the figure (a handwritten digit).
        rng: `numpy.random.Generator`; the only source of randomness.
        color: name of the figure's colour; drawn at random when `None`.
        max_stretch: how much wider or narrower than its face a figure is drawn at most,
            as condensed and extended faces are; log-uniform between the inverse of
            `1 + max_stretch` and itself.

    Returns:
        `(image, color, background)`: a PIL RGB image and two names from `COLORS`.
    """
    color, background = _draw_color_pair(rng, color)
    target = rng.uniform(0.55, 0.95) * image_size
    if isinstance(glyph, Glyph):
        mask = _glyph_mask(glyph, target)
    else:
        scale = target / max(glyph.size)
        mask = glyph.resize([max(1, round(side * scale)) for side in glyph.size])
    if max_stretch:
        mask = _stretch(mask, max_stretch, image_size, rng)
    image = Image.new("RGB", (image_size, image_size), _jitter(background, rng))
    left, top = (
        int(rng.integers(0, max(0, image_size - side) + 1)) for side in mask.size
    )
    image.paste(_jitter(color, rng), (left, top), mask)
    return image, color, background


def _stretch(mask, max_stretch, image_size, rng):
    factor = math.exp(rng.uniform(-1, 1) * math.log1p(max_stretch))
    width, height = mask.size
    return mask.resize((min(image_size, max(1, round(width * factor))), height))


def _draw_color_pair(rng, color):
    """Two names from `COLORS`, far enough apart; the first is `color` if given."""
    pairs = _color_pairs(color)
    return pairs[rng.integers(len(pairs))]


@functools.cache
def _color_pairs(color):
    figures = [color] if color else list(COLORS)
    return [
        (figure, background)
        for figure, background in itertools.product(figures, COLORS)
        if math.dist(COLORS[figure], COLORS[background]) >= MIN_COLOR_DISTANCE
    ]


def _jitter(color, rng):
    shifts = rng.integers(-COLOR_JITTER, COLOR_JITTER + 1, 3).tolist()
    return tuple(
        min(255, max(0, channel + shift))
        for channel, shift in zip(COLORS[color], shifts, strict=True)
    )


@functools.cache
def _relative_extent(glyph):
    """Longer side of the glyph's box at a font size of one."""
    left, top, right, bottom = _font(glyph.font, 64).getbbox(glyph.character)
    return max(right - left, bottom - top) / 64


def _glyph_mask(glyph, target):
    """The glyph's coverage as an 8-bit image whose longer side is about `target`."""
    font = _font(glyph.font, max(4, int(target / _relative_extent(glyph))))
    left, top, right, bottom = font.getbbox(glyph.character)
    mask = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(mask).text((-left, -top), glyph.character, fill=255, font=font)
    return mask
