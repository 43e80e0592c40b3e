"""AdaFactorW as the papers print it, in float64 NumPy."""

import ml_dtypes
import numpy as np


class PublishedAdaFactorW:
    """The published update of one weight, in float64.

    BASIC section 9.1; Shazeer & Stern 2018, algorithms 1 (factored moments) and 4
    (clipping by RMS); Kingma & Ba 2015, algorithm 1 (bias corrections). Without factors
    and clipping, but with an epsilon beside the root of the second moment, it is AdamW.
    """

    def __init__(
        self,
        weight,
        learning_rate=1e-2,
        beta_1=0.9,
        beta_2=0.999,
        decay=0.0,
        clip_threshold=1.0,
        momentum_dtype="bfloat16",
        factored=True,
        epsilon=0.0,
    ):
        self.weight = weight.astype("float64")
        self.learning_rate, self.decay = learning_rate, decay
        self.beta_1, self.beta_2 = beta_1, beta_2
        self.clip_threshold, self.epsilon = clip_threshold, epsilon
        self.momentum_dtype = getattr(ml_dtypes, momentum_dtype, momentum_dtype)
        self.momentum = np.zeros(weight.shape, self.momentum_dtype)
        self.is_factored = factored and weight.ndim > 1 and min(weight.shape[-2:]) > 1
        self.rows = np.zeros(weight.shape[:-1])
        self.columns = np.zeros(weight.shape[:-2] + weight.shape[-1:])
        self.full = np.zeros(weight.shape)
        self.step = 0

    def apply(self, gradient):
        squares = gradient.astype("float64") ** 2
        self.apply_estimate(gradient, squares, np.zeros_like(squares))

    def apply_estimate(self, gradient, squares, least):
        """A step with an estimate of the squared gradient.

        It may be negative: averages are at least the part that `least` has in them.
        """
        self.step += 1
        # Cast to float32, as the paper says, before the update is computed.
        old, beta_1 = self.momentum.astype("float32"), np.float32(self.beta_1)
        momentum = beta_1 * old + np.float32(1 - self.beta_1) * gradient
        self.momentum = momentum.astype(self.momentum_dtype)
        squares, least = squares + 1e-30, least + 1e-30
        if self.is_factored:
            self.rows = self.average(self.rows, squares.mean(-1), least.mean(-1))
            self.columns = self.average(self.columns, squares.mean(-2), least.mean(-2))
            outer = self.rows[..., :, None] * self.columns[..., None, :]
            second = outer / self.rows.mean(-1)[..., None, None]
        else:
            second = self.full = self.average(self.full, squares, least)
        first = momentum.astype("float64") / (1 - self.beta_1**self.step)
        second = second / (1 - self.beta_2**self.step)
        update = first / (np.sqrt(second) + self.epsilon)
        if self.clip_threshold is not None:
            rms = np.sqrt(np.mean(update**2))
            update = update / max(1, rms / self.clip_threshold)
        self.weight -= self.learning_rate * (update + self.decay * self.weight)

    def average(self, old, new, least):
        average = self.beta_2 * old + (1 - self.beta_2) * new
        return np.maximum(average, (1 - self.beta_2) * least)
