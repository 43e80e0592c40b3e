"""Structural similarity of gray images (Wang et al. 2004).

`tf.image.ssim` has the same windows but computes in float32, where the variance of a
flat bright window is lost to cancellation; here it is in float64 unless asked.
"""

import functools

import numpy as np

IMAGE_SIZE = 32  # pixels a side at which images are compared
WINDOW = 11
SIGMA = 1.5
C1, C2 = 0.01**2, 0.03**2  # (K L)^2 for pixels of range L = 1
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


def gaussian_window():
    """`[11]` float64: a Gaussian of standard deviation 1.5 that sums to 1."""
    offsets = np.arange(WINDOW) - WINDOW // 2
    weights = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    return weights / weights.sum()


def window_matrix(weights, size):
    """`[S - 10, S]`: a product with it filters columns of S pixels by `weights`."""
    rows = [np.roll(np.pad(weights, (0, size - WINDOW)), shift)
            for shift in range(size - WINDOW + 1)]  # fmt: skip
    return np.stack(rows)


def to_gray(images):
    """`[B, S, S, 3]` in [0, 1] to luma, `[B, S, S]` float32."""
    return np.asarray(images, np.float32) @ np.float32(_LUMA)


@functools.cache
def _mean_matrix(size, dtype):
    return window_matrix(gaussian_window(), size).astype(dtype)


def window_means(images):
    """`[B, S, S]` to the mean under each whole window, `[B, S - 10, S - 10]`."""
    size = images.shape[-1]
    matrix = _mean_matrix(size, images.dtype)
    # One product for all rows of all images, then one an image.
    across = images.reshape(-1, size) @ matrix.T
    return matrix @ across.reshape(len(images), size, -1)


def window_moments(images, dtype=np.float64):
    """The means and variances of all windows: two arrays `[B, S - 10, S - 10]`."""
    images = np.asarray(images, dtype)
    means = window_means(images)
    return means, window_means(images**2) - means**2


def structural_similarity(
    images, others, moments=None, other_moments=None, dtype=np.float64
):
    """The mean over all whole windows of luminance times contrast and structure.

    Args:
        images: `[B, S, S]` in [0, 1], S at least 11.
        others: the same, to be compared with `images` one by one.
        moments: `window_moments(images)` where they are known; computed when None.
        other_moments: the same of `others`.
        dtype: float32 takes a third of the time and is off by 1e-4 where it is worst.

    Returns:
        `[B]` in [-1, 1].

    Raises:
        ValueError: for other shapes.
    """
    shape = np.shape(images)
    if shape != np.shape(others) or len(shape) != 3 or min(shape[1:]) < WINDOW:
        raise ValueError(
            f"images of shapes {shape} and {np.shape(others)}: "
            f"both must be the same [B, S, S] with S at least {WINDOW}"
        )
    images, others = np.asarray(images, dtype), np.asarray(others, dtype)
    means, variances = moments or window_moments(images, dtype)
    other_means, other_variances = other_moments or window_moments(others, dtype)
    products = means * other_means
    covariances = window_means(images * others) - products
    similarities = (2 * products + C1) * (2 * covariances + C2)
    similarities /= means**2 + other_means**2 + C1
    similarities /= variances + other_variances + C2
    return similarities.mean(axis=(1, 2))
