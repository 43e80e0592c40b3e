"""Every image that a loop over all pairs finds is found, with the same scores."""

import re

import numpy as np
import pytest

from basic_tf.data import contamination, ssim
from tests.data import drawn_images

EVALUATION = drawn_images.draw_glyphs(150, 1, held_out=True)
TRAINING = np.concatenate(
    [drawn_images.draw_glyphs(100, 2), drawn_images.change(EVALUATION[:100], 3)]
)


@pytest.fixture(scope="module")
def scores():
    """Of all pairs, `[training, evaluation]`."""
    return np.stack(
        [
            ssim.structural_similarity(np.broadcast_to(x, EVALUATION.shape), EVALUATION)
            for x in TRAINING
        ]
    )


@pytest.fixture(scope="module")
def held():
    return contamination.EvaluationImages(EVALUATION)


@pytest.fixture(scope="module")
def matches(held):
    return held.find(TRAINING)


def test_the_same_images_are_found_as_by_a_loop(scores, matches):
    expected = np.flatnonzero(scores.max(axis=1) >= 0.5)
    assert [match.image for match in matches] == expected.tolist()
    assert 80 < len(expected) < len(TRAINING)


def test_a_match_is_a_pair_with_its_score(scores, matches):
    for match in matches:
        score = scores[match.image, match.evaluation_image]
        assert match.score == pytest.approx(score, abs=1e-12) and score >= 0.5


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.7, 0.9])
def test_no_pair_is_missed_by_the_estimate(scores, threshold):
    held = contamination.EvaluationImages(EVALUATION, threshold)
    estimates = held.estimate(TRAINING)
    assert (scores >= threshold).sum() > 20
    assert estimates[scores >= threshold].min() > threshold


def test_most_pairs_of_images_without_a_match_are_not_compared(held, scores):
    unmatched = TRAINING[scores.max(axis=1) < 0.5]
    before = held.num_compared
    assert held.find(unmatched) == []
    assert held.num_compared - before < 0.2 * len(unmatched) * len(EVALUATION)


def test_all_pairs_are_compared_on_demand(matches):
    exhaustive = contamination.EvaluationImages(EVALUATION, exhaustive=True)
    found = exhaustive.find(TRAINING)
    assert [match.image for match in found] == [match.image for match in matches]
    assert exhaustive.num_compared >= len(EVALUATION) * (len(TRAINING) - len(found))


def test_the_threshold_itself_is_a_match():
    """Scores beside it, by less than what float32 would tell apart."""
    score = ssim.structural_similarity(TRAINING[101:102], EVALUATION[1:2])[0]
    for threshold, count in ((score, 1), (np.nextafter(score, 2), 0)):
        held = contamination.EvaluationImages(EVALUATION[1:2], threshold, True)
        assert len(held.find(TRAINING[101:102])) == count


def test_copies_are_found_among_many_of_their_kind():
    images = drawn_images.draw_glyphs(600, 7)
    found = contamination.EvaluationImages(images).find(images[::50])
    assert [match.score for match in found] == pytest.approx([1.0] * 12)


def test_one_evaluation_image_is_enough_and_no_image_has_no_match():
    held = contamination.EvaluationImages(EVALUATION[:1])
    assert [match.image for match in held.find(EVALUATION[:1])] == [0]
    assert held.find(TRAINING[:0]) == []


@pytest.mark.parametrize("shape", [(0, 32, 32), (2, 8, 8), (2, 32, 32, 3)])
def test_what_cannot_be_compared_is_refused(shape):
    with pytest.raises(ValueError, match=re.escape(f"images of shape {shape}; they")):
        contamination.EvaluationImages(np.zeros(shape))


def test_images_of_another_size_are_refused(held):
    with pytest.raises(ValueError, match=re.escape("give [B, S, S] of the same S")):
        held.find(np.zeros((2, 16, 16)))


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_a_threshold_that_means_nothing_is_refused(threshold):
    with pytest.raises(ValueError, match=rf"threshold {threshold} must be in \(0, 1\]"):
        contamination.EvaluationImages(EVALUATION, threshold)
