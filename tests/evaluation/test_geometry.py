"""Against closed forms, and naive loops in float64."""

import itertools

import numpy as np
import pytest

from basic_tf.evaluation import geometry

E8 = np.exp(-8.0)


def unit_rows(count, dim=5, seed=0, dtype=np.float32):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)


def small_blocks(monkeypatch, size=4):
    monkeypatch.setattr(geometry, "BLOCK", size)


@pytest.mark.parametrize("sign, distance", [(1, 0.0), (-1, 4.0)])
def test_alignment_is_0_of_equal_pairs_and_4_of_antipodal_ones(sign, distance):
    rows = unit_rows(9, dtype=np.float64)
    assert geometry.alignment(rows, sign * rows) == pytest.approx(distance, abs=1e-14)


def test_alignment_of_orthogonal_pairs_is_2():
    assert geometry.alignment(np.eye(4), np.roll(np.eye(4), 1, axis=0)) == 2.0


def test_uniformity_of_a_collapsed_model_is_0():
    rows = np.broadcast_to(unit_rows(1, dtype=np.float64), (10, 5))
    assert geometry.uniformity(rows) == pytest.approx(0.0, abs=1e-14)


def test_uniformity_of_orthonormal_rows_is_minus_4():
    assert geometry.uniformity(np.eye(7)) == pytest.approx(-4.0, rel=1e-14)


def test_uniformity_of_two_antipodes_is_minus_8():
    assert geometry.uniformity([[1.0, 0.0], [-1.0, 0.0]]) == pytest.approx(-8.0)


@pytest.mark.parametrize("block", [1, 3, 4, 100])
def test_uniformity_of_two_clusters_counts_each_pair_once(monkeypatch, block):
    small_blocks(monkeypatch, block)
    rows = np.repeat([[0.0, 1.0], [0.0, -1.0]], [5, 6], axis=0)
    expected = np.log((10 + 15 + 30 * E8) / 55)
    assert geometry.uniformity(rows) == pytest.approx(expected, rel=1e-14)


def test_uniformity_is_the_naive_mean_over_distinct_pairs(monkeypatch):
    small_blocks(monkeypatch)
    rows = unit_rows(11)
    exact = rows.astype(np.float64)
    values = [
        np.exp(-2 * np.sum((u - v) ** 2)) for u, v in itertools.combinations(exact, 2)
    ]
    expected = np.log(np.mean(values))
    assert geometry.uniformity(rows) == pytest.approx(expected, rel=1e-13)


def test_alignment_and_gap_are_the_naive_means(monkeypatch):
    small_blocks(monkeypatch)
    images, texts = unit_rows(11), unit_rows(11, seed=1)
    pairs = list(zip(images.astype(np.float64), texts.astype(np.float64), strict=True))
    distances = [np.sum((image - text) ** 2) for image, text in pairs]
    assert geometry.alignment(images, texts) == pytest.approx(np.mean(distances))
    gap = np.linalg.norm(np.mean([image - text for image, text in pairs], axis=0))
    assert geometry.modality_gap(images, texts) == pytest.approx(gap)


def test_the_gap_is_that_of_the_centres():
    images = np.repeat([[1.0, 0.0, 0.0]], 4, axis=0)
    texts = np.array([[0, 1.0, 0], [0, -1.0, 0], [0, 0, 1.0], [0, 0, -1.0]])
    assert geometry.modality_gap(images, texts) == 1.0
    assert geometry.modality_gap(images, -images) == 2.0
    assert geometry.modality_gap(images, images) == 0.0


@pytest.mark.parametrize("count", [1, 2, 6])
def test_rank_me_of_orthonormal_rows_is_their_number(count):
    share = 1 / count + 1e-7
    expected = np.exp(-count * share * np.log(share))
    assert geometry.rank_me(np.eye(6)[:count]) == pytest.approx(expected, rel=1e-12)
    assert expected == pytest.approx(count, rel=1e-5)


@pytest.mark.parametrize("block", [2, 5, 100])
def test_rank_me_of_repeated_directions_follows_their_singular_values(
    monkeypatch, block
):
    small_blocks(monkeypatch, block)
    counts = np.array([1, 4, 9])  # singular values 1, 2 and 3, and 0 of the fourth
    rows = np.repeat(np.eye(4)[:3], counts, axis=0)
    shares = np.array([1, 2, 3, 0]) / 6 + 1e-7
    expected = np.exp(-np.sum(shares * np.log(shares)))
    assert geometry.rank_me(rows) == pytest.approx(expected, rel=1e-9)


def test_rank_me_of_a_collapsed_model_is_1():
    rows = np.broadcast_to(unit_rows(1, dtype=np.float64), (40, 5))
    assert geometry.rank_me(rows) == pytest.approx(1.0, abs=1e-4)


def test_rank_me_in_blocks_is_that_of_all_singular_values(monkeypatch):
    small_blocks(monkeypatch)
    rows = unit_rows(23)
    singular = np.linalg.svd(rows.astype(np.float64), compute_uv=False)
    shares = singular / singular.sum() + 1e-7
    expected = np.exp(-np.sum(shares * np.log(shares)))
    assert geometry.rank_me(rows) == pytest.approx(expected, rel=1e-12)


def test_all_measures_together_are_each_alone():
    images, texts = unit_rows(12), unit_rows(12, seed=1)
    assert geometry.measure(images, texts) == {
        "alignment": geometry.alignment(images, texts),
        "modality_gap": geometry.modality_gap(images, texts),
        "image_uniformity": geometry.uniformity(images),
        "text_uniformity": geometry.uniformity(texts),
        "image_rank_me": geometry.rank_me(images),
        "text_rank_me": geometry.rank_me(texts),
        "num_pairs": 12,
        "rank_me_sample": 12,
    }


def test_rank_me_of_many_pairs_is_of_a_sample_that_is_stated(monkeypatch):
    monkeypatch.setattr(geometry, "RANK_ME_SAMPLE", 3)
    rows = np.repeat(np.eye(8), 2, axis=0)  # three of them have a rank of 2 or 3
    first, again = (geometry.measure(rows, rows, seed=1) for _ in range(2))
    assert (first["num_pairs"], first["rank_me_sample"]) == (16, 3)
    assert 1.5 < first["image_rank_me"] < 3.01
    assert first["image_rank_me"] == first["text_rank_me"]  # of the same pairs
    assert first == again


def test_what_are_no_pairs_is_refused():
    with pytest.raises(ValueError, match=r"\(3, 3\) and texts of shape \(2, 3\) are"):
        geometry.measure(np.eye(3), np.eye(3)[:2])


def test_one_embedding_has_no_uniformity():
    with pytest.raises(ValueError, match="1 embedding is given, 2 are needed"):
        geometry.uniformity(np.eye(3)[:1])


def test_vectors_of_another_length_are_refused():
    with pytest.raises(ValueError, match="row 0 of texts has length 2; normalise"):
        geometry.measure(np.eye(3), 2 * np.eye(3))
