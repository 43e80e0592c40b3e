"""Against a naive loop over all candidates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.evaluation import retrieval

# Products of such rows are exact, so that equal scores are equal in every order.
DIRECTIONS = np.concatenate([np.eye(4), -np.eye(4), np.ones((1, 4)) / 2])


@st.composite
def galleries(draw):
    num_images = draw(st.integers(1, 7))
    direction = st.integers(0, len(DIRECTIONS) - 1)
    images = draw(st.lists(direction, min_size=num_images, max_size=num_images))
    more = draw(st.lists(st.integers(0, num_images - 1), max_size=9))
    image_of_text = draw(st.permutations([*range(num_images), *more]))
    count = len(image_of_text)
    texts = draw(st.lists(direction, min_size=count, max_size=count))
    return DIRECTIONS[images], DIRECTIONS[texts], np.array(image_of_text)


def naive_recalls(images, texts, image_of_text, k):
    """Sorts all candidates of each query; of equal ones, the wrong before the right."""
    hits = []
    for image, row in enumerate(images):
        order = sorted(
            range(len(texts)),
            key=lambda text: (-(row @ texts[text]), image_of_text[text] == image),
        )
        hits.append(any(image_of_text[text] == image for text in order[:k]))
    found = []
    for text, row in enumerate(texts):
        order = sorted(
            range(len(images)),
            key=lambda image: (-(row @ images[image]), image_of_text[text] == image),
        )
        found.append(image_of_text[text] in order[:k])
    return np.mean(hits), np.mean(found)


@given(galleries(), st.integers(1, 60))
def test_recalls_are_those_of_a_naive_loop_in_blocks_of_any_size(gallery, elements):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "BLOCK_ELEMENTS", elements)
        ours = retrieval.measure(*gallery)
    for k in (1, 5, 10):
        expected = naive_recalls(*gallery, k)
        assert ours[f"image_to_text_r{k}"] == pytest.approx(expected[0])
        assert ours[f"text_to_image_r{k}"] == pytest.approx(expected[1])


def unit_rows(count, dim, seed):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return np.float32(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_recalls_of_embeddings_without_ties_are_those_of_a_naive_loop():
    images, texts = unit_rows(30, 6, seed=0), unit_rows(70, 6, seed=1)
    owners = np.random.default_rng(2).permutation(np.arange(70) % 30)
    texts = texts + 0.5 * images[owners]
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    ours = retrieval.measure(images, texts, owners)
    for k in (1, 5, 10):
        expected = naive_recalls(*(np.float64(x) for x in (images, texts)), owners, k)
        actual = [ours[f"{way}_r{k}"] for way in ("image_to_text", "text_to_image")]
        assert actual == pytest.approx(expected)
    assert (ours["num_images"], ours["num_texts"]) == (30, 70)
    assert 0.1 < ours["text_to_image_r1"] < 0.9


def test_one_near_caption_of_several_is_a_hit():
    images = np.eye(4)[:2]
    texts = np.eye(4)[[3, 0, 2, 1]]  # the first of each image is far from all
    ours = retrieval.measure(images, texts, [0, 0, 1, 1])
    assert ours["image_to_text_r1"] == 1.0
    assert ours["text_to_image_r1"] == 0.5


def test_a_collapsed_model_finds_nothing_at_1():
    rows = np.repeat(unit_rows(1, 7, seed=0), 20, axis=0)
    ours = retrieval.measure(rows, rows, np.arange(20))
    for way in ("image_to_text", "text_to_image"):
        assert [ours[f"{way}_r{k}"] for k in (1, 5, 10)] == [0.0, 0.0, 0.0]


def test_a_caption_that_two_images_share_is_found_from_2_on():
    texts = np.eye(3)[[0, 0, 1]]
    images = np.array([[1.0, 0, 0], [0.8, 0, 0.6], [0, 1.0, 0]])
    image_ranks, text_ranks = retrieval.ranks(images, texts, np.arange(3))
    assert image_ranks.tolist() == [1, 1, 0]
    assert text_ranks.tolist() == [0, 1, 0]


def test_a_gallery_of_fewer_than_k_is_found_whole():
    ours = retrieval.measure(np.eye(3), np.roll(np.eye(3), 1, axis=0), np.arange(3))
    for way in ("image_to_text", "text_to_image"):
        assert [ours[f"{way}_r{k}"] for k in (1, 5, 10)] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "image_of_text, message",
    [
        ([0, 1], r"shape \(2,\) must name an image for each of the 3 texts"),
        ([0, 1, 2], "text 2 is of image 2, but there are 2, from 0 on"),
        ([0, -1, 1], "text 1 is of image -1, but there are 2"),
        ([1, 1, 1], "image 0 has no text to find; leave out the 1 images"),
    ],
)
def test_what_does_not_pair_is_refused(image_of_text, message):
    with pytest.raises(ValueError, match=message):
        retrieval.measure(np.eye(3)[:2], np.eye(3), image_of_text)


def test_embeddings_of_two_models_are_refused():
    with pytest.raises(ValueError, match="of dimension 3 and texts of dimension 4"):
        retrieval.measure(np.eye(3), np.eye(4)[:3], [0, 1, 2])


def test_embeddings_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="row 0 of images has length nan"):
        retrieval.measure(np.full((2, 2), np.nan), np.eye(2), [0, 1])
