"""Vectors whose inner product estimates the structural similarity of two images.

Structural similarity is a positive definite kernel, so that it is an inner product of
vectors of length 1. In each window, with A^2 = variance + C2 / 2 and M^2 = mean^2 +
C1 / 2 of one image and B, N of the other:

    contrast and structure = <x / A, y / B> sech(ln A - ln B)
    luminance              = <m / M, n / N> sech(ln M - ln N)

where x holds the window's weighted deviations and sqrt(C2 / 2), m its mean and
sqrt(C1 / 2), and sech is the Fourier transform of a positive function. The vectors here
keep of it what matters most: deviations up to polynomials of degree 3, the first two
terms of each sech as a cosine series, <m / M, n / N> as 1, blocks of 2 x 2 windows, and
of all that the directions in which the evaluation images differ most.
"""

import math

import numpy as np

from basic_tf.data import ssim

DEGREE = 3
CONTRAST_PERIOD, LUMINANCE_PERIOD = 6.0, 8.0  # of the cosines, in units of ln A, ln M
BLOCK = 2  # windows a side
CHUNK = 256  # images at a time, whose features fill 11 MB


def _polynomials():
    """`[4, 11]`: weights of a window's coordinates along one axis, by degree.

    They are the polynomials that are orthonormal under the Gaussian window, times it.
    """
    window = ssim.gaussian_window()
    powers = (np.arange(ssim.WINDOW) - ssim.WINDOW // 2) ** np.arange(DEGREE + 1)[
        :, None
    ]
    roots = np.sqrt(window)
    basis, _ = np.linalg.qr((powers * roots).T)
    return basis.T * np.sign(basis[0:1].T) * roots


def _cosine_series(logarithms, period):
    """`[B, h, w]` to `[B, 3, h, w]`; an inner product over the 3 approximates sech.

    Scaled so that it is 1 between equal values, as sech(0) is.
    """
    frequency = 2 * math.pi / period
    # The transform of sech(u) at frequency f is proportional to sech(pi f / 2).
    share = 2 / math.cosh(math.pi * frequency / 2)
    first, second = math.sqrt(1 / (1 + share)), math.sqrt(share / (1 + share))
    return np.stack(
        [
            np.full_like(logarithms, first),
            second * np.cos(frequency * logarithms),
            second * np.sin(frequency * logarithms),
        ],
        axis=1,
    )


def window_features(images):
    """`[B, S, S]` float32 in [0, 1] to `[B, F]` float32 of length at most 1."""
    size = images.shape[-1]
    count = size - ssim.WINDOW + 1
    bank = [ssim.window_matrix(weights, size) for weights in _polynomials()]
    bank = np.concatenate(bank).astype(np.float32)
    across = (images.reshape(-1, size) @ bank.T).reshape(len(images), size, -1)
    coordinates = (bank @ across).reshape(
        len(images), DEGREE + 1, count, DEGREE + 1, count
    )
    means = coordinates[:, 0, :, 0]
    variances = bank[:count] @ (images**2 @ bank[:count].T) - means**2
    contrast = np.sqrt(np.maximum(variances, 0) + ssim.C2 / 2)
    luminance = np.sqrt(means**2 + ssim.C1 / 2)
    deviations = [
        coordinates[:, row, :, column]
        for row in range(DEGREE + 1)
        for column in range(DEGREE + 1 - row)
        if row + column
    ]
    deviations.append(np.full_like(contrast, math.sqrt(ssim.C2 / 2)))
    deviations = np.stack(deviations, axis=1) / (contrast * count)[:, np.newaxis]
    contrasts = _cosine_series(np.log(contrast), CONTRAST_PERIOD)
    luminances = _cosine_series(np.log(luminance), LUMINANCE_PERIOD)
    factors = contrasts[:, :, np.newaxis] * luminances[:, np.newaxis]
    factors = factors.reshape(len(images), -1, count, count)
    # Their products, projected on what is constant in a block of windows.
    products = _blocks(deviations) @ _blocks(factors).swapaxes(-1, -2) / BLOCK
    return products.reshape(len(images), -1)


def _blocks(maps):
    """`[B, C, h, w]` to `[B, blocks, C, windows of a block]`.

    Windows that are left over at the right and the bottom are left out.
    """
    side = maps.shape[-1] // BLOCK
    whole = maps[..., : side * BLOCK, : side * BLOCK]
    split = whole.reshape(*maps.shape[:2], side, BLOCK, side, BLOCK)
    return split.transpose(0, 2, 4, 1, 3, 5).reshape(
        len(maps), side**2, maps.shape[1], BLOCK**2
    )


class Projection:
    """Window features along the directions in which some images differ most.

    Args:
        images: `[N, S, S]` float32, those that the directions are taken from.
        dim: D, directions at most.
        max_images: so many of the images, spread evenly, are looked at.
    """

    def __init__(self, images, dim=256, max_images=2048):
        step = math.ceil(len(images) / max_images)
        chosen = images[::step]
        features = np.concatenate(
            [
                window_features(chosen[start : start + CHUNK])
                for start in range(0, len(chosen), CHUNK)
            ]
        )
        # Of fewer images than features: eigenvectors of the smaller of the two Grams.
        values, vectors = np.linalg.eigh((features @ features.T).astype(np.float64))
        values, vectors = values[::-1][:dim], vectors[:, ::-1][:, :dim]
        kept = values > 1e-5 * values[0]  # below are copies, and rounding
        scaled = vectors[:, kept] / np.sqrt(values[kept])
        self.directions = features.T @ scaled.astype(np.float32)

    def __call__(self, images):
        """`[B, S, S]` to `[B, D + 1]` float32, of length at most 1.

        The last column is the length of what the directions do not explain: the
        product of two images' is the most by which it can change their similarity.
        """
        explained = np.concatenate(
            [
                window_features(images[start : start + CHUNK]) @ self.directions
                for start in range(0, len(images), CHUNK)
            ]
        )
        rest = np.maximum(1 - np.square(explained).sum(axis=1, keepdims=True), 0)
        return np.concatenate([explained, np.sqrt(rest)], axis=1)
