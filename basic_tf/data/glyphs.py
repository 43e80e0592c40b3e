"""`glyphs`: the embedded data set, a TFDS builder over what open fonts draw.

Importing this module registers the builder, so that `tfds.load("glyphs")` finds it.
Nothing is downloaded. The splits serif, phosphor, remix and digits share no typeface,
icon family or hand with training:

| split | figures |
|---|---|
| train | 36 characters in 17 faces; the icons of four families |
| validation | the same fonts, other renderings |
| serif | the characters in DejaVu Serif |
| phosphor, remix | two other icon families, of the names they share with train |
| digits | scikit-learn's 1,797 handwritten digits |
| colors | the figures of train; the label is the figure's colour |
"""

import dataclasses
import io
import pathlib
import zlib

import numpy as np
import tensorflow_datasets as tfds
from PIL import Image
from sklearn import datasets as sklearn_datasets

from basic_tf.data import glyph_captions
from basic_tf.data import glyph_drawing as drawing

MAX_STRETCH = 0.6  # of a character's width in the splits train and validation


@dataclasses.dataclass(kw_only=True)
class GlyphsConfig(tfds.core.BuilderConfig):
    """A size of the data set.

    Attributes:
        image_size: side of the images in pixels.
        renderings: training images of an icon's name, half of a character's; the other
            splits follow from it.
        all_icons: every icon name, each glyph of it drawn `renderings` times.
    """

    image_size: int = 32
    renderings: int = 300
    all_icons: bool = False

    def share(self, fraction):
        """So many renderings of a name (or glyph, or colour) in an evaluation split."""
        return max(1, round(fraction * self.renderings))


class Glyphs(tfds.core.GeneratorBasedBuilder):
    """Characters and icons in random colours, with noisy captions.

    Features: `image` `[S, S, 3]` uint8; `caption`; `label`, what the split is judged by
    (the figure's name, in `colors` its colour); `labels`, the name and the colour.
    """

    VERSION = tfds.core.Version("1.2.0")
    BUILDER_CONFIGS = [
        GlyphsConfig(name="concepts", description="names that three families draw"),
        GlyphsConfig(name="concepts_64", description="64 x 64", image_size=64),
        GlyphsConfig(name="tiny", description="for tests", renderings=3),
        GlyphsConfig(
            name="all_icons", description="every icon", renderings=2, all_icons=True
        ),
    ]

    def _info(self):
        names = [
            *drawing.CHARACTERS,
            *drawing.icon_names(self.builder_config.all_icons),
            *drawing.COLORS,
        ]
        names = list(dict.fromkeys(names))
        size = self.builder_config.image_size
        return tfds.core.DatasetInfo(
            builder=self,
            description=__doc__,
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(size, size, 3)),
                    "caption": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=names),
                    "labels": tfds.features.Sequence(
                        tfds.features.ClassLabel(names=names)
                    ),
                }
            ),
            supervised_keys=("image", "label"),
        )

    def _split_generators(self, dl_manager):
        del dl_manager  # nothing to download
        return {
            "train": self._train(),
            "validation": self._validation(),
            "serif": self._held_out(drawing.typeface_glyphs(held_out=True)),
            "phosphor": self._held_out(drawing.icon_glyphs("phosphor")),
            "remix": self._held_out(drawing.icon_glyphs("remix")),
            "digits": self._handwritten_digits(),
            "colors": self._colors(),
        }

    def _generate_examples(self):
        raise AssertionError("every split has a generator of its own")

    @property
    def _icon_names(self):
        return drawing.icon_names(self.builder_config.all_icons)

    def _train(self):
        for name in [*drawing.CHARACTERS, *self._icon_names]:
            yield from self._renderings(name, "train", self._num_renderings(name))

    def _num_renderings(self, name):
        count = self.builder_config.renderings
        if self.builder_config.all_icons:
            return count * sum(map(len, _families_drawing(name)))
        # Seventeen typefaces draw a character, four families at most an icon.
        return count * (2 if name in drawing.CHARACTERS else 1)

    def _validation(self):
        for name in [*drawing.CHARACTERS, *self._icon_names]:
            yield from self._renderings(
                name, "validation", self.builder_config.share(0.04)
            )

    def _held_out(self, glyphs_by_name):
        known = {*drawing.CHARACTERS, *self._icon_names}
        for name in sorted(known & glyphs_by_name.keys()):
            for index, glyph in enumerate(glyphs_by_name[name]):
                for rendering in range(self.builder_config.share(0.02)):
                    key = f"{pathlib.Path(glyph.font).stem}/{name}/{index}/{rendering}"
                    yield self._example(key, _generator(key), glyph, name)

    def _handwritten_digits(self):
        digits = sklearn_datasets.load_digits()
        names = list(drawing.CHARACTERS)[:10]
        for index, (pixels, target) in enumerate(
            zip(digits.images, digits.target, strict=True)
        ):
            figure = Image.fromarray((pixels * 255 / 16).astype(np.uint8))
            key = f"digits/{index}"
            yield self._example(key, _generator(key), figure, names[target])

    def _colors(self):
        names = [*drawing.CHARACTERS, *self._icon_names]
        for color in drawing.COLORS:
            for index in range(self.builder_config.share(0.4)):
                key = f"colors/{color}/{index}"
                rng = _generator(key)
                name = names[rng.integers(len(names))]
                yield self._example(key, rng, _draw_glyph(name, rng), name, color)

    def _renderings(self, name, split, count):
        # Hands write letters narrow and wide; an icon has one shape.
        max_stretch = MAX_STRETCH if name in drawing.CHARACTERS else 0.0
        for index in range(count):
            key = f"{split}/{name}/{index}"
            rng = _generator(key)
            glyph = _draw_glyph(name, rng)
            yield self._example(key, rng, glyph, name, max_stretch=max_stretch)

    def _example(self, key, rng, figure, name, color=None, max_stretch=0.0):
        """Draws one example; a given `color` is the figure's colour and the label."""
        image, drawn_color, background = drawing.draw(
            self.builder_config.image_size, figure, rng, color, max_stretch
        )
        encoded = io.BytesIO()
        image.save(encoded, "PNG", compress_level=1)
        encoded.seek(0)
        caption = glyph_captions.draw_caption(
            name, drawn_color, background, name in drawing.CHARACTERS, rng
        )
        return key, {
            "image": encoded,
            "caption": caption,
            "label": color or name,
            "labels": [name, drawn_color],
        }


def _generator(key):
    """All randomness of an example comes from its key: order does not matter."""
    return np.random.default_rng(zlib.crc32(key.encode()))


def _families_drawing(name):
    """The glyphs of a training name, a list for each family that draws it."""
    if name in drawing.CHARACTERS:
        return [drawing.typeface_glyphs()[name]]
    families = (drawing.icon_glyphs(family) for family in drawing.TRAIN_FAMILIES)
    return [family[name] for family in families if name in family]


def _draw_glyph(name, rng):
    """Draws a family, then one of its glyphs: large families do not crowd others."""
    families = _families_drawing(name)
    glyphs = families[rng.integers(len(families))]
    return glyphs[rng.integers(len(glyphs))]
