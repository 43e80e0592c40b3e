"""Training images that look like evaluation images (BASIC section 7.1).

BASIC drops a training image whose structural similarity with any evaluation image is
0.5 or more. To compare all pairs takes 10 microseconds each; so an estimate by one
matrix product (`ssim_features`) names candidates, and only those are compared.
"""

import dataclasses

import numpy as np

from basic_tf.data import batches, sources, ssim, ssim_features

THRESHOLD = 0.5
MIN_SLACK = 0.4
BATCH = 256  # images that are decoded at a time
PAIRS = 128  # compared at a time, which stay in the processor's cache
ROUNDING = 1e-3  # more than what float32 can be off by


@dataclasses.dataclass(frozen=True)
class Match:
    """A training image and an evaluation image that it looks like, by their rows."""

    image: int
    evaluation_image: int
    score: float


def gray_batches(examples):
    """The images of some `Examples` in order, `[b, 32, 32]` float32 in [0, 1]."""
    dataset = batches.evaluation_batches(examples, ssim.IMAGE_SIZE, BATCH)
    for images, mask in dataset.as_numpy_iterator():
        yield ssim.to_gray(images[mask])


def load_evaluation(names, data_dir=None, threshold=THRESHOLD, exhaustive=False):
    """Reads sources of evaluation images.

    Args:
        names: sources, as `sources.load` takes them.
        data_dir: as there.
        threshold: as `EvaluationImages` takes it.
        exhaustive: the same.

    Returns:
        `(EvaluationImages, [(source, key) of each])`.

    Raises:
        tf.errors.OpError: if an image cannot be decoded.
    """
    images, keys = [], []
    for name in names:
        examples = sources.load(name, data_dir)
        images += gray_batches(examples)
        keys += [(name, key) for key in examples.keys]
    return EvaluationImages(np.concatenate(images), threshold, exhaustive), keys


class EvaluationImages:
    """Evaluation images to hold training images against.

    Args:
        images: `[N, S, S]` gray in [0, 1]; `ssim.IMAGE_SIZE` is the usual S.
        threshold: structural similarity from which on two images match.
        exhaustive: compare all pairs. Otherwise a pair is a candidate if it would match
            with what the estimate leaves unexplained agreeing as well as `threshold`
            asks of the whole. That is no bound: an unexplained part may agree in full.
            experiments/studies/contamination_speed.py counts what is missed.

    Attributes:
        num_compared: pairs that were compared so far.

    Raises:
        ValueError: for another shape, no image, or a threshold that is not above 0.
    """

    def __init__(self, images, threshold=THRESHOLD, exhaustive=False):
        images = np.asarray(images, np.float32)
        if images.ndim != 3 or not len(images) or min(images.shape[1:]) < ssim.WINDOW:
            raise ValueError(
                f"evaluation images of shape {images.shape}; they must be [N, S, S] "
                f"with N at least 1 and S at least {ssim.WINDOW}"
            )
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold {threshold} must be in (0, 1]; BASIC's is 0.5")
        self.images, self.threshold, self.exhaustive = images, threshold, exhaustive
        self._means, self._variances = ssim.window_moments(images, np.float32)
        if not exhaustive:
            self._project = ssim_features.Projection(images)
            self._features = self._project(images)
            self._features[:, -1] *= max(threshold, MIN_SLACK)
        self.num_compared = 0

    def estimate(self, images):
        """`[B, S, S]` to the estimated similarities with all, `[B, N]` float32."""
        if self.exhaustive:
            return np.ones((len(images), len(self.images)), np.float32)
        return self._project(images) @ self._features.T

    def find(self, images):
        """A match for each image that has one.

        The evaluation image with the highest estimate is compared first; only where it
        is no match, all other candidates are, and the most similar is named.

        Args:
            images: `[B, S, S]` gray in [0, 1].

        Returns:
            List of `Match`, one for each image with a match, in their order.

        Raises:
            ValueError: for images of another size than the evaluation images.
        """
        images = np.asarray(images, np.float32)
        if images.ndim != 3 or images.shape[1:] != self.images.shape[1:]:
            raise ValueError(
                f"images of shape {images.shape} cannot be compared with evaluation "
                f"images of shape {self.images.shape}; give [B, S, S] of the same S"
            )
        if not len(images):
            return []
        estimates = self.estimate(images)
        likeliest = estimates.argmax(axis=1)
        rows = np.arange(len(images))
        rows = rows[estimates[rows, likeliest] >= self.threshold]
        likeliest = likeliest[rows]
        scores = self._compare(images, rows, likeliest)
        best = {
            row: Match(int(row), int(column), float(score))
            for row, column, score in zip(rows, likeliest, scores, strict=True)
            if score >= self.threshold
        }
        estimates[rows, likeliest] = -np.inf  # compared already
        estimates[list(best)] = -np.inf
        rows, columns = np.nonzero(estimates >= self.threshold)
        scores = self._compare(images, rows, columns)
        for index in np.flatnonzero(scores >= self.threshold):
            row, score = rows[index], scores[index]
            if row not in best or score > best[row].score:
                best[row] = Match(int(row), int(columns[index]), float(score))
        return [best[row] for row in sorted(best)]

    def _compare(self, images, rows, columns):
        """Structural similarities of pairs of images and evaluation images.

        In float64 wherever float32 leaves it open whether they match.
        """
        self.num_compared += len(rows)
        means, variances = ssim.window_moments(images, np.float32)
        scores = np.empty(len(rows))
        for start in range(0, len(rows), PAIRS):
            row, column = rows[start : start + PAIRS], columns[start : start + PAIRS]
            scores[start : start + PAIRS] = ssim.structural_similarity(
                images[row],
                self.images[column],
                (means[row], variances[row]),
                (self._means[column], self._variances[column]),
                np.float32,
            )
        close = np.flatnonzero(scores >= self.threshold - ROUNDING)
        for start in range(0, len(close), PAIRS):
            pairs = close[start : start + PAIRS]
            scores[pairs] = ssim.structural_similarity(
                images[rows[pairs]], self.images[columns[pairs]]
            )
        return scores
