"""From a file of OpenCLIP's weights to a classifier, by the programs alone."""

import json

import numpy as np
import pytest
from PIL import Image

import basic_tf
from tests.data.image_files import smooth
from tests.imported_run import import_run, run_program

LABELS = ("home", "heart")
TEMPLATES = ("a {}", "{}!")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """`(loaded run, image file, scores of the labels)` of an imported model."""
    folder = tmp_path_factory.mktemp("served")
    workdir, _ = import_run(folder)
    process = run_program(
        "tools.export_saved_model",
        workdir=workdir,
        output=folder / "saved_model",
        labels=",".join(LABELS),
        templates="|".join(TEMPLATES),
    )
    assert process.returncode == 0, process.stderr
    smooth(40, 60).save(folder / "a.png")
    process = run_program(
        "tools.classify",
        folder / "a.png",
        "--json",
        saved_model=folder / "saved_model",
    )
    assert process.returncode == 0, process.stderr
    predictions = json.loads(process.stdout)["predictions"]
    scores = {row["label"]: row["score"] for row in predictions}
    run = basic_tf.load(workdir)
    return run, folder / "a.png", [scores[label] for label in LABELS]


def python_scores(run, image):
    """Softmax of the scaled cosines, in float64."""
    classifier = []
    for label in LABELS:
        texts = [template.replace("{}", label) for template in TEMPLATES]
        mean = np.float64(run.model.encode_text(run.tokenizer(texts))).mean(axis=0)
        classifier.append(mean / np.linalg.norm(mean))
    embedding = np.float64(run.model.encode_image(image[np.newaxis]))
    (cosines,) = embedding @ np.transpose(classifier)
    logits = np.exp(float(run.model.log_scale)) * cosines
    return np.exp(logits) / np.exp(logits).sum()


def test_scores_are_those_of_the_model_in_python(served):
    run, path, scores = served
    image = run.load_image(path.read_bytes()).numpy()
    np.testing.assert_allclose(scores, python_scores(run, image), rtol=0, atol=1e-5)
    assert abs(scores[0] - scores[1]) > 0.01  # a model that tells them apart


def test_a_mistake_is_refused_and_leaves_the_folder(served, tmp_path):
    workdir = served[1].parent / "imported"
    (tmp_path / "notes.txt").write_text("mine")
    for changes, message in (
        ({"output": tmp_path}, f"{tmp_path} holds other files; name a new folder"),
        ({"templates": ""}, "template '' needs exactly one slot {}"),
    ):
        values = {"workdir": workdir, "output": tmp_path / "new", "labels": "a"}
        process = run_program("tools.export_saved_model", **values | changes)
        assert process.returncode == 1 and "Traceback" not in process.stderr
        assert message in process.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_image_is_resized_and_cropped_as_open_clip_does(served):
    run, path, scores = served
    image = Image.open(path).resize((48, 32), Image.Resampling.BICUBIC)
    pixels = np.float32(image.crop((8, 0, 40, 32))) / 255
    # PIL rounds to bytes.
    np.testing.assert_allclose(scores, python_scores(run, pixels), rtol=0, atol=1e-3)
