"""The program that lists training images which look like evaluation images."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.data import drawn_images
from tests.imported_run import run_program


def write_source(folder, images):
    """A csv of as many PNG files."""
    folder.mkdir()
    rows = ["image,caption"]
    for index, image in enumerate(images):
        Image.fromarray(np.uint8(np.round(image * 255))).save(folder / f"{index}.png")
        rows.append(f"{index}.png,x")
    (folder / "pairs.csv").write_text("\n".join(rows))
    return f"csv:{folder / 'pairs.csv'}"


def key(source, image):
    """The key of an image of a csv, whose first line names the columns."""
    return f"{source.removeprefix('csv:')} line {image + 2}"


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation") / "images"
    return write_source(folder, drawn_images.draw_glyphs(8, 1, held_out=True))


def test_copies_are_listed_and_shown_with_their_scores(evaluation, tmp_path):
    noise = np.random.default_rng(0).uniform(size=(3, 32, 32))
    copies = drawn_images.draw_glyphs(8, 1, held_out=True)[[5, 2]]
    training = write_source(tmp_path / "training", np.concatenate([noise, copies]))
    process = run_program(
        "tools.filter_contamination",
        training=training,
        evaluation=evaluation,
        output=tmp_path / "out",
        json="true",
    )
    assert process.returncode == 0, process.stderr
    lines = (tmp_path / "out" / "dropped.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["key"], row["source"], row["match"]) for row in rows] == [
        (key(training, 3), evaluation, key(evaluation, 5)),
        (key(training, 4), evaluation, key(evaluation, 2)),
    ]
    assert [row["score"] for row in rows] == pytest.approx([1, 1])
    summary = json.loads(process.stdout.splitlines()[-1])
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["dropped"], summary["training_images"]) == (2, 5)
    sheet = (tmp_path / "out" / "contact_sheet.html").read_text()
    assert sheet.count("<figure>") == 2
    assert f"{key(training, 3)} | {evaluation} {key(evaluation, 5)}" in sheet


def test_a_threshold_that_means_nothing_is_refused_in_a_line(evaluation, tmp_path):
    process = run_program(
        "tools.filter_contamination",
        training=evaluation,
        evaluation=evaluation,
        output=tmp_path / "out",
        threshold=2,
    )
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert "error: threshold 2.0 must be in (0, 1]" in process.stderr
