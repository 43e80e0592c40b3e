import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run
from PIL import Image

from basic_tf.data import tokenizer
from basic_tf.export import saved_model
from basic_tf.models import zoo
from tests import child_processes


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("saved_model")
    ours = tokenizer.Tokenizer(tokenizer.train(["home", "heart", "lock"] * 3, 40), 16)
    config = tiny_run.tiny_config(folder).model.to_dict()
    run = types.SimpleNamespace(
        model=zoo.build(config, ours.vocabulary_size), tokenizer=ours, image_size=32
    )
    saved_model.ZeroShotServer(run, ["home", "heart", "lock"], ["{}"]).save(folder)
    return folder


def classify(exported, *arguments):
    model = f"--saved_model={exported}"
    return child_processes.run(["-m", "tools.classify", model, *arguments])


def write(path, **options):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 4)).astype(np.uint8)
    mode = options.pop("mode", "RGB")
    if mode == "I;16":
        image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    elif mode == "RGBA":
        image = Image.fromarray(pixels)
    else:
        image = Image.fromarray(pixels[..., :3]).convert(mode)
    image.save(path, **options)
    return path


def test_every_kind_of_image_is_answered_and_every_bad_file_named(exported, tmp_path):
    good = [
        write(tmp_path / "gray.png", mode="L"),
        write(tmp_path / "rgba.png", mode="RGBA"),
        write(tmp_path / "palette.png", mode="P"),
        write(tmp_path / "cmyk.jpg", mode="CMYK"),
        write(tmp_path / "deep.png", mode="I;16"),
        write(tmp_path / "rgb.bmp"),
        write(tmp_path / "rgb.webp"),
        write(
            tmp_path / "animated.gif",
            save_all=True,
            append_images=[Image.new("RGB", (30, 20))],
        ),
    ]
    Image.new("RGB", (1, 1)).save(tmp_path / "dot.png")
    good.append(tmp_path / "dot.png")
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "cut.jpg").write_bytes(good[3].read_bytes()[:100])
    bad = [tmp_path / name for name in ("gone.png", "empty.png", "text.png", "cut.jpg")]
    bad.append(tmp_path)
    files = [bad[0], *good[:5], *bad[1:], *good[5:]]
    process = classify(exported, "--json", *files)
    assert process.returncode == 1
    answers = {row["file"]: row for row in map(json.loads, process.stdout.splitlines())}
    for path in good:
        scores = [p["score"] for p in answers[str(path)]["predictions"]]
        assert sum(scores) == pytest.approx(1, abs=1e-5)
        assert scores == sorted(scores, reverse=True)
    # TensorFlow's own start-up messages stand on stderr, too.
    lines = process.stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == len(bad)
    for path, line in zip(bad, errors, strict=True):
        assert "error" in answers[str(path)]
        assert line.startswith(f"error: {path}: ")
    assert "not a JPEG, PNG, GIF, BMP or WebP image" in errors[2]
    assert "Traceback" not in process.stderr


def test_labels_are_chosen_at_call_time(exported, tmp_path):
    path = write(tmp_path / "a.png")
    process = classify(exported, "--labels", "house, 50 % {off},é", path)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    assert lines[0] == str(path)
    assert {line.split("%  ", 1)[1] for line in lines[1:]} == {
        "house",
        "50 % {off}",
        "é",
    }


def test_no_file_and_no_model_are_said_in_a_line(exported, tmp_path):
    process = classify(exported)
    assert process.returncode == 1 and "no file given" in process.stderr
    process = classify(tmp_path / "nowhere", "a.png")
    assert process.returncode == 1 and "is not a SavedModel" in process.stderr
    (tmp_path / "saved_model.pb").write_bytes(b"cut off")
    process = classify(tmp_path, "a.png")
    assert process.returncode == 1 and "cannot be loaded: " in process.stderr
    assert "Traceback" not in process.stderr


def test_a_saved_model_of_another_program_is_refused(tmp_path):
    tf.saved_model.save(tf.Module(), tmp_path / "other")
    process = classify(tmp_path / "other", "a.png")
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert "other is not of tools.export_saved_model" in process.stderr


def test_an_unknown_flag_is_refused(exported):
    process = classify(exported, "--lables=a", "x.png")
    assert process.returncode == 1
    assert "Unknown command line flag 'lables'" in process.stderr
    assert "labels" in process.stderr
