"""What a page shows of a task, against the made-up outcome itself."""

import base64
import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from basic_tf import data_uris
from basic_tf.evaluation import report_task
from tests.evaluation.made_up_outcomes import make_result, make_scores, names


@pytest.fixture(scope="module")
def result():
    """Of too many classes for a matrix."""
    return make_result(names(report_task.MATRIX_CLASSES + 1, "icon"), 300, seed=2)


def test_the_gallery_shows_right_and_wrong_predictions_with_their_scores(result):
    _, scores = make_scores(len(result.class_names), 300, seed=2)
    ranked = np.argsort(-scores, axis=1)
    is_right = ranked[:, 0] == result.labels
    gallery = report_task.describe("icons", result, 8)["gallery"]
    assert [card["is_right"] for card in gallery] == [True] * 6 + [False] * 10
    images = {
        data_uris.of_pixels(tf.io.decode_png(image).numpy() / 255): index
        for index, image in enumerate(result.examples.images)
    }
    for card in gallery:
        index = images[card["image"]]
        assert card["is_right"] == is_right[index]
        assert card["true_name"] == result.class_names[result.labels[index]]
        assert card["top"] == [
            (
                result.class_names[c],
                scores[index, c],
                c == result.labels[index],
            )
            for c in ranked[index, :5]
        ]
        assert card["rank"] == 1 + np.sum(
            scores[index] > scores[index, result.labels[index]]
        )


def test_images_are_the_pixels_that_the_model_saw(result):
    uri = report_task.describe("icons", result, 8)["gallery"][0]["image"]
    content = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    shown = np.asarray(Image.open(io.BytesIO(content)))
    pixels = [np.asarray(Image.open(io.BytesIO(i))) for i in result.examples.images]
    assert any(np.array_equal(shown, image) for image in pixels)


def test_confused_pairs_have_an_image_of_their_kind(result):
    predictions = result.ranking.predictions
    pairs = report_task.describe("icons", result, 8)["pairs"]
    assert len(pairs) == report_task.NUM_PAIRS
    for true, predicted, count, share, image in pairs:
        is_true = result.labels == result.class_names.index(true)
        alike = is_true & (predictions == result.class_names.index(predicted))
        assert (count, share) == (alike.sum(), alike.sum() / is_true.sum())
        first = tf.io.decode_png(result.examples.images[np.flatnonzero(alike)[0]])
        assert image == data_uris.of_pixels(first.numpy() / 255)
