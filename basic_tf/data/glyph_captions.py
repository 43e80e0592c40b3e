"""Noisy captions for the `glyphs` data set, as alt-text on the web is noisy.

`MIXTURE` is the whole recipe: a caption is drawn from one of its kinds. About one in
ten says nothing of what the figure is.
"""

import numpy as np

CHARACTER_PHRASES = (
    "{name}",
    "the {name}",
    "a {name} in print",
    "a picture of the {name}",
)
ICON_PHRASES = (
    "a {name} icon",
    "{name} icon",
    "{name} symbol",
    "icon of a {name}",
    "a picture of a {name}",
)
COLOR_PHRASES = ("{color} {name}", "a {color} {name}", "{name} in {color}")
BACKGROUND_PHRASES = (
    "a {color} {name} on {background}",
    "{color} {name} on a {background} background",
)
FILE_PHRASES = (
    "{slug}.png",
    "icon-{slug}.png",
    "{slug}_{color}_{number}.png",
    "img_{number}_{slug}.jpg",
)
COLOR_ONLY_PHRASES = ("something {color}", "a {color} sign", "{color} on {background}")
EMPTY_PHRASES = ("untitled", "image {number}", "sign {number}.png", "click here")

# kind -> (share of the captions, phrases of a character, phrases of an icon)
MIXTURE = {
    "bare name": (0.30, ("{name}",), ("{name}",)),
    "phrase": (0.20, CHARACTER_PHRASES, ICON_PHRASES),
    "color": (0.17, COLOR_PHRASES, COLOR_PHRASES),
    "color and background": (0.13, BACKGROUND_PHRASES, BACKGROUND_PHRASES),
    "file name": (0.10, FILE_PHRASES, FILE_PHRASES),
    "color only": (0.06, COLOR_ONLY_PHRASES, COLOR_ONLY_PHRASES),
    "says nothing": (0.04, EMPTY_PHRASES, EMPTY_PHRASES),
}
_KINDS = list(MIXTURE.values())
_CUMULATIVE_SHARES = np.cumsum([share for share, *_ in _KINDS])[:-1]


def draw_caption(name, color, background, is_character, rng):
    """Draws a caption from `MIXTURE`.

    Args:
        name: what the figure is called, such as `"digit seven"` or `"lock"`.
        color: name of the figure's colour.
        background: name of the background's colour.
        is_character: whether the figure is a letter or digit rather than an icon.
        rng: `numpy.random.Generator`; the only source of randomness.

    Returns:
        The caption, a string.
    """
    kind = int(np.searchsorted(_CUMULATIVE_SHARES, rng.random(), side="right"))
    phrases = _KINDS[kind][1 if is_character else 2]
    return phrases[rng.integers(len(phrases))].format(
        name=name,
        slug=name.replace(" ", "-"),
        color=color,
        background=background,
        number=int(rng.integers(100)),
    )
