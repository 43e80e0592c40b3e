"""A page that shows pairs of images side by side."""

import jinja2

from basic_tf import data_uris

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
<figure><img alt="left" src="{{ left }}">
<img alt="right" src="{{ right }}">
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
    rows = [(*map(data_uris.of_pixels, images), caption) for *images, caption in pairs]
    return page.render(title=title, summary=summary, pairs=rows)
