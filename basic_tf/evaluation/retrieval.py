"""Retrieval of images by captions and of captions by images (CLIP section E.2)."""

import numpy as np

from basic_tf.evaluation import unit_vectors

KS = (1, 5, 10)
BLOCK_ELEMENTS = 1 << 22  # of a block of scores, 32 MB
TIE = 1e-9  # scores that are closer are equal: more than float64 products round


def measure(images, texts, image_of_text):
    """R@1, R@5 and R@10 both ways, the share of queries with a hit among the first k.

    An image is found by a caption if it is among the k images nearest to it; a caption
    of an image is found if any of its captions is among the k nearest. Of equal scores
    the wrong one counts as nearer: a collapsed model finds nothing, and a
    caption that another image has word for word is not found at k = 1.

    Args:
        images: `[N, D]` float unit vectors, N the gallery of the captions.
        texts: `[M, D]` float unit vectors, one or more of each image.
        image_of_text: `[M]` int in [0, N), the image that each caption describes.

    Returns:
        `{"image_to_text_r1", "..._r5", "..._r10", "text_to_image_r1", "..._r5",
        "..._r10", "num_images", "num_texts"}`, shares in [0, 1]. In a gallery of k or
        fewer everything is found.

    Raises:
        ValueError: for vectors that are not of length 1, of two dimensions, for an
            index out of range, and for an image without a caption.
    """
    images = unit_vectors.check("images", images)
    texts = unit_vectors.check("texts", texts)
    image_of_text = _check_pairs(images, texts, np.asarray(image_of_text))
    image_ranks, text_ranks = ranks(images, texts, image_of_text)
    return {
        **{f"image_to_text_r{k}": float(np.mean(image_ranks < k)) for k in KS},
        **{f"text_to_image_r{k}": float(np.mean(text_ranks < k)) for k in KS},
        "num_images": len(images),
        "num_texts": len(texts),
    }


def ranks(images, texts, image_of_text):
    """How many wrong candidates are at least as near as the best right one.

    One sweep over blocks of images; no `[N, M]` matrix is held.

    Args:
        images, texts, image_of_text: see `measure`; every image has a caption.

    Returns:
        `[N]` and `[M]` int: for each image the captions of others before its own best,
        and for each caption the images before its own.
    """
    texts = np.asarray(texts, np.float64)
    own_scores = np.empty(len(texts))
    image_ranks = np.empty(len(images), np.int64)
    text_ranks = np.zeros(len(texts), np.int64)
    by_image = np.argsort(image_of_text, kind="stable")
    bounds = np.searchsorted(image_of_text[by_image], np.arange(len(images) + 1))
    size = max(1, BLOCK_ELEMENTS // max(texts.shape))
    for start in range(0, len(texts), size):
        rows = slice(start, start + size)
        pairs = texts[rows], images[image_of_text[rows]]
        own_scores[rows] = np.einsum("md,md->m", *pairs, dtype=np.float64)
    for start in range(0, len(images), size):
        block = np.asarray(images[start : start + size], np.float64)
        rows = slice(start, start + len(block))
        own = by_image[bounds[start] : bounds[start + len(block)]]
        best = np.maximum.reduceat(own_scores[own], bounds[rows] - bounds[start])
        scores = block @ texts.T
        scores[image_of_text[own] - start, own] = -np.inf
        image_ranks[rows] = np.sum(scores >= best[:, None] - TIE, axis=1)
        text_ranks += np.sum(scores >= own_scores - TIE, axis=0)
    return image_ranks, text_ranks


def _check_pairs(images, texts, image_of_text):
    if images.shape[1] != texts.shape[1]:
        raise ValueError(
            f"images of dimension {images.shape[1]} and texts of dimension "
            f"{texts.shape[1]} have no cosine; take both from one model"
        )
    if image_of_text.shape != (len(texts),):
        raise ValueError(
            f"image_of_text of shape {image_of_text.shape} must name an image for each "
            f"of the {len(texts)} texts"
        )
    outside = (image_of_text < 0) | (image_of_text >= len(images))
    if outside.any():
        text = np.flatnonzero(outside)[0]
        raise ValueError(
            f"text {text} is of image {image_of_text[text]}, but there are "
            f"{len(images)}, from 0 on"
        )
    missing = np.flatnonzero(np.bincount(image_of_text, minlength=len(images)) == 0)
    if len(missing):
        raise ValueError(
            f"image {missing[0]} has no text to find; leave out the {len(missing)} "
            "images without one"
        )
    return image_of_text
