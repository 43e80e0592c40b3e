"""An encoder that knows some names and hears some templates gives known accuracies."""

import io
import json
import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from basic_tf.data import glyph_drawing, sources
from basic_tf.evaluation import prompts, task_files, tasks
from experiments.studies import page, prompt_outcomes

COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
LABELS = np.array([0, 0, 0, 1, 1, 2])


class Model:
    """An image is its mean colour; a text the colour it ends with, or blue."""

    def encode_image(self, images):
        return tf.math.l2_normalize(tf.reduce_mean(images, axis=(1, 2)), axis=1)

    def encode_text(self, texts):
        colors = tf.constant(list(COLORS.values()), tf.float32) / 255
        ends = [tf.strings.regex_full_match(texts, f"(.* )?{name}") for name in COLORS]
        index = tf.where(ends[0], 0, tf.where(ends[1], 1, 2))
        return tf.gather(colors, index)


@pytest.fixture(scope="module")
def run():
    return types.SimpleNamespace(model=Model(), tokenizer=tf.identity, image_size=8)


@pytest.fixture(scope="module")
def task():
    images = []
    for label in LABELS:
        file = io.BytesIO()
        Image.new("RGB", (8, 8), list(COLORS.values())[label]).save(file, "PNG")
        images.append(file.getvalue())
    return tasks.Task(
        name="patches",
        examples=sources.Examples(images, [""] * 6),
        labels=LABELS,
        class_names=list(COLORS),
        templates=["something {}", "{}"],
    )


CHOICES = {
    "templates": ["a {}", "{} it is"],  # ends with the name; never does
    "class_names": {"half": {"green": "grass"}, "german": {"red": "rot"}},
}


def test_each_template_and_all_together_are_judged_for_each_set(run, task):
    own, half, german = prompt_outcomes.compare(run, task, CHOICES)
    assert own.name_set == prompt_outcomes.OWN_NAMES
    assert (own.class_names, half.class_names, german.class_names) == (
        ["red", "green", "blue"], ["red", "grass", "blue"], ["rot", "green", "blue"],
    )  # fmt: skip
    # All texts are blue: of equal ones the first class, red, is taken.
    assert own.by_template == {"a {}": 1.0, "{} it is": 0.5}
    # Grass is blue: green images are as near to all, blue ones to the last two.
    assert half.by_template["a {}"] == pytest.approx(3 / 6)
    assert german.by_template["a {}"] == pytest.approx(5 / 6)
    assert own.top1 == np.mean(own.predictions == LABELS)


def test_without_choices_the_task_is_judged_by_its_own(run, task):
    (own,) = prompt_outcomes.compare(run, task, {})
    assert own.by_template == {"something {}": 1.0, "{}": 1.0}
    assert own.predictions.tolist() == LABELS.tolist()


def test_rows_and_summary_say_how_far_templates_spread(run, task):
    outcomes = prompt_outcomes.compare(run, task, CHOICES)[:1]
    rows = prompt_outcomes.rows(task, outcomes)
    assert [(row["template"], row["top1"]) for row in rows[:2]] == [
        ("a {}", 1.0), ("{} it is", 0.5),
    ]  # fmt: skip
    assert rows[2]["template"] == "all 2 together"
    summary = prompt_outcomes.summary(task, outcomes)
    assert summary.startswith("Top-1 of patches, 6 images: names of the task ")
    assert "(templates alone 0.500 to 1.000, standard deviation 0.250)." in summary


def test_plots_show_every_set_its_confusions_and_an_image_of_each_pair(
    run, task, tmp_path
):
    outcomes = prompt_outcomes.compare(run, task, CHOICES)
    loaded = []

    def load(index):
        loaded.append(index)
        return np.zeros((8, 8, 3))

    spread, matrices, pairs = prompt_outcomes.plots(task, outcomes, load)
    (axes,) = spread.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        prompt_outcomes.OWN_NAMES, "half", "german",
    ]  # fmt: skip
    assert sorted(axes.lines[0].get_xdata()) == [0.5, 1.0]
    for each, outcome in zip(matrices.axes, outcomes, strict=True):
        shares = each.images[0].get_array()
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        right = np.bincount(LABELS) / 6 @ np.diagonal(shares)
        assert right == pytest.approx(outcome.top1)
    shown = [each for each in pairs.axes if each.images]
    assert len(shown) == len(loaded) > 0
    wrong = [outcome.predictions != LABELS for outcome in outcomes]
    assert set(loaded) <= set(np.flatnonzero(np.any(wrong, axis=0)).tolist())
    rows = prompt_outcomes.rows(task, outcomes)
    page.write(tmp_path, "Prompts", "all", rows, [spread, matrices, pairs])
    assert (tmp_path / "plot_2.png").is_file()


def test_a_matrix_of_too_many_classes_is_left_out(run, task, monkeypatch):
    monkeypatch.setattr(prompt_outcomes, "MATRIX_CLASSES", 2)
    outcomes = prompt_outcomes.compare(run, task, {})
    assert len(prompt_outcomes.plots(task, outcomes, None)) == 2


@pytest.mark.parametrize(
    "names, message",
    [
        ({"pink": "rose"}, "'x' rename 'pink', which is no class; the first are red"),
        ({"red": "blue"}, "'x' call two classes 'blue'"),
    ],
)
def test_names_that_do_not_fit_are_refused(run, task, names, message):
    with pytest.raises(ValueError, match=message):
        prompt_outcomes.compare(run, task, {"class_names": {"x": names}})


def test_the_sets_that_come_along_fit_the_glyphs():
    path = pathlib.Path(page.__file__).with_name("prompt_sensitivity.json")
    choices = json.loads(path.read_text())
    names = {
        "digits": list(glyph_drawing.CHARACTERS)[:10],
        "serif": list(glyph_drawing.CHARACTERS),
        "colors": list(glyph_drawing.COLORS),
    }
    assert set(choices) <= set(task_files.known_tasks())
    for task, fields in choices.items():
        prompts.check_templates(fields["templates"])
        for name_set, renamed in fields["class_names"].items():
            ours = prompt_outcomes.rename(name_set, renamed, names[task])
            assert set(ours).isdisjoint(renamed)
