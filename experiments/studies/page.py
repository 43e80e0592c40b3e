"""What a study leaves behind: `table.json`, plots, and a page that shows them."""

import io
import json
import pathlib

import jinja2

from basic_tf import data_uris, files

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; color: #222 }
table { border-collapse: collapse } img { max-width: 100% }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
</style>
<h1>{{ title }}</h1><p>{{ summary }}</p>
{% for plot in plots %}
<img alt="plot" src="{{ plot }}">{% endfor %}
<table><tr>{% for name in columns %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in rows %}<tr>{% for name in columns %}
<td>{{ row[name] }}</td>
{% endfor %}</tr>{% endfor %}</table></html>
"""


def write(directory, title, summary, rows, figures=()):
    """Writes a study's results.

    Args:
        directory: folder, made when missing.
        title: heading of the page.
        summary: what was measured and what came out, a paragraph.
        rows: list of dictionaries with the same keys, the table.
        figures: matplotlib figures; also written as `plot_K.png`.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    files.write_whole(directory / "table.json", json.dumps(rows, indent=2))
    plots = []
    for index, figure in enumerate(figures):
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=150, bbox_inches="tight")
        (directory / f"plot_{index}.png").write_bytes(png.getvalue())
        plots.append(data_uris.of_content("image/png", png.getvalue()))
    page = jinja2.Environment(autoescape=True).from_string(_PAGE)
    html = page.render(
        title=title, summary=summary, rows=rows, columns=list(rows[0]), plots=plots
    )
    files.write_whole(directory / "report.html", html)
