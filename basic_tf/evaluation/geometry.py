"""How embeddings of held-out pairs lie on the sphere, in float64.

Alignment and uniformity after Wang and Isola 2020, the modality gap after Liang et al.
2022, RankMe after Garrido et al. 2023.
"""

import numpy as np

from basic_tf.evaluation import unit_vectors

BLOCK = 2048  # rows of a block: a block of distances takes 32 MB
RANK_ME_SAMPLE = 25_600
RANK_ME_EPSILON = 1e-7


def measure(images, texts, seed=0):
    """All measures of N pairs; no `[N, N]` matrix is held.

    Args:
        images: `[N, D]` float unit vectors.
        texts: `[N, D]` float unit vectors, those of the same pairs.
        seed: of the rows that RankMe takes where there are more than `RANK_ME_SAMPLE`.

    Returns:
        `{"alignment", "modality_gap", "image_uniformity", "text_uniformity",
        "image_rank_me", "text_rank_me", "num_pairs", "rank_me_sample"}`; all but RankMe
        are exact.

    Raises:
        ValueError: for other shapes, for fewer than two pairs, and for vectors that are
            not of length 1.
    """
    images, texts = _check_pairs(images, texts)
    count = len(images)
    sample = np.arange(count)
    if count > RANK_ME_SAMPLE:
        drawn = np.random.default_rng(seed).choice(count, RANK_ME_SAMPLE, replace=False)
        sample = np.sort(drawn)
    return {
        "alignment": alignment(images, texts),
        "modality_gap": modality_gap(images, texts),
        "image_uniformity": uniformity(images),
        "text_uniformity": uniformity(texts),
        "image_rank_me": rank_me(images[sample]),
        "text_rank_me": rank_me(texts[sample]),
        "num_pairs": count,
        "rank_me_sample": len(sample),
    }


def alignment(images, texts):
    """`E ||f(x) - g(y)||^2` over the pairs: 0 where both are equal, at most 4.

    Arguments as those of `measure`.
    """
    images, texts = _check_pairs(images, texts)
    total = sum(
        np.sum((image - text) ** 2)
        for image, text in zip(_blocks(images), _blocks(texts), strict=True)
    )
    return float(total / len(images))


def modality_gap(images, texts):
    """`||E f(x) - E g(y)||`, the distance of the two centres.

    Arguments as those of `measure`.
    """
    images, texts = _check_pairs(images, texts)
    means = (np.mean(rows, axis=0, dtype=np.float64) for rows in (images, texts))
    return float(np.linalg.norm(np.subtract(*means)))


def uniformity(embeddings):
    """`ln E exp(-2 ||u - v||^2)` over the pairs of two different rows.

    0 where all are equal, -4 where all are orthogonal, about -4 for many that are
    spread evenly over a sphere of many dimensions. A row is no pair with itself: that
    would add 1/N to the mean, however they are spread.

    Args:
        embeddings: `[N, D]` float unit vectors of one modality.

    Raises:
        ValueError: for fewer than two rows or vectors that are not of length 1.
    """
    embeddings = unit_vectors.check("embeddings", embeddings)
    count = len(embeddings)
    if count < 2:
        raise ValueError("uniformity is of pairs; 1 embedding is given, 2 are needed")
    total = 0.0
    for row, first in enumerate(_blocks(embeddings)):
        for column, second in enumerate(_blocks(embeddings[row * BLOCK :])):
            kernel = _kernel(first, second)
            if column == 0:  # the same rows: every pair twice, and each with itself
                np.fill_diagonal(kernel, 0.0)
                total += kernel.sum() / 2
            else:
                total += kernel.sum()
    return float(np.log(total / (count * (count - 1) / 2)))


def rank_me(embeddings):
    """Effective rank `exp(-sum p ln p)`, `p_k = s_k / sum s + 1e-7`.

    Args:
        embeddings: `[N, D]` float unit vectors; `s` are their singular values.

    Returns:
        From about 1, where all are on one line, to min(N, D).

    Raises:
        ValueError: for vectors that are not of length 1.
    """
    embeddings = unit_vectors.check("embeddings", embeddings)
    triangle = np.zeros((0, embeddings.shape[1]))
    for block in _blocks(embeddings):
        # R of the QR decomposition has the singular values of all rows so far; the
        # matrix of products would lose those below 1e-8 of the largest.
        triangle = np.linalg.qr(np.concatenate([triangle, block]), mode="r")
    singular = np.linalg.svd(triangle, compute_uv=False)
    shares = singular / singular.sum() + RANK_ME_EPSILON
    return float(np.exp(-np.sum(shares * np.log(shares))))


def _blocks(rows):
    for start in range(0, len(rows), BLOCK):
        yield np.asarray(rows[start : start + BLOCK], np.float64)


def _kernel(first, second):
    """`exp(-2 ||u - v||^2)` of all pairs, in one `[n, m]` matrix."""
    squares = [np.einsum("nd,nd->n", rows, rows) for rows in (first, second)]
    kernel = first @ second.T
    kernel *= 4
    kernel -= 2 * squares[0][:, None]
    kernel -= 2 * squares[1]
    return np.exp(kernel, out=kernel)


def _check_pairs(images, texts):
    images = unit_vectors.check("images", images)
    texts = unit_vectors.check("texts", texts)
    if images.shape != texts.shape:
        raise ValueError(
            f"images of shape {images.shape} and texts of shape {texts.shape} are no "
            "pairs; give as many of both, of the same dimension"
        )
    return images, texts
