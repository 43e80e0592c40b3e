"""A page that shows pairs of images side by side."""

import base64
import io

import jinja2
import numpy as np
from PIL import Image

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem; color: #222 }
figure { display: inline-block; margin: .5rem; width: 14rem; overflow-wrap: anywhere }
figcaption { font-size: .8rem }
img { width: 6.5rem; image-rendering: pixelated }
</style>
<h1>{{ title }}</h1><p>{{ summary }}</p>
{% for left, right, caption in pairs %}
<figure><img alt="left" src="data:image/png;base64,{{ left }}">
<img alt="right" src="data:image/png;base64,{{ right }}">
<figcaption>{{ caption }}</figcaption></figure>{% endfor %}</html>
"""


def render(title, summary, pairs):
    """The page, HTML in one file.

    Args:
        title: heading.
        summary: a paragraph.
        pairs: list of `(left, right, caption)`; images are `[S, S]` in [0, 1].
    """
    page = jinja2.Environment(autoescape=True).from_string(_PAGE)
    rows = [(_png(left), _png(right), caption) for left, right, caption in pairs]
    return page.render(title=title, summary=summary, pairs=rows)


def _png(image):
    file = io.BytesIO()
    Image.fromarray(np.uint8(np.round(np.asarray(image) * 255))).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
