import base64
import json

from matplotlib import figure

from experiments.studies import page


def test_a_study_leaves_its_table_its_plots_and_a_page_of_both(tmp_path):
    plot = figure.Figure(figsize=(1, 1))
    plot.subplots().plot([1, 2])
    rows = [{"name": "<plain>", "seconds": 1.5}, {"name": "other", "seconds": 2}]
    page.write(tmp_path / "made", "Speed & size", "It is fast.", rows, [plot])
    assert json.loads((tmp_path / "made/table.json").read_text()) == rows
    png = (tmp_path / "made/plot_0.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    html = (tmp_path / "made/report.html").read_text()
    assert "<h1>Speed &amp; size</h1><p>It is fast.</p>" in html
    assert base64.b64encode(png).decode() in html
    cells = ["&lt;plain&gt;", "1.5", "other", "2"]
    assert [html.count(f"<td>{cell}</td>") for cell in cells] == [1, 1, 1, 1]
    assert "<th>name</th><th>seconds</th>" in html
