"""The linear evaluation of SimCLR (section B.6): a softmax layer by SGD.

It is trained on features that are fixed, without the crops and flips of the paper: the
encoder then sees each image once, not 90 times.
"""

import keras
import numpy as np
from keras import layers

from basic_tf.data import batches, example_order

MOMENTUM = 0.9
LEARNING_RATE = 0.1  # at a batch of 256, and in proportion
EPOCHS = 90


def train(features, labels, num_classes, batch_size=4096, epochs=EPOCHS, seed=0):
    """Trains a linear classifier: Nesterov momentum, a constant rate, no weight decay.

    The problem is convex, so weights start at zero.

    Args:
        features: `[N, D]` float.
        labels: `[N]` int in [0, C).
        num_classes: C.
        batch_size: B; all examples where they are fewer. The learning rate is
            `0.1 B / 256`.
        epochs: passes over the examples, of which what is left of B waits for the next.
        seed: int, of their order.

    Returns:
        A `keras.Model` from `[b, D]` to logits `[b, C]`.

    Raises:
        ValueError: for no example, or a label out of range.
        FloatingPointError: if the weights are not finite at the end.
    """
    features, labels = np.asarray(features, np.float32), np.asarray(labels, np.int64)
    if not len(labels) or features.shape[:1] != labels.shape:
        raise ValueError(
            f"features of shape {features.shape} and labels of shape {labels.shape} "
            "must be [N, D] and [N], N >= 1"
        )
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"labels from {labels.min()} to {labels.max()} must be at least 0 and "
            f"below num_classes {num_classes}"
        )
    batch_size = min(batch_size, len(labels))
    steps = max(1, round(epochs * len(labels) / batch_size))
    model = keras.Sequential(
        [
            keras.Input(features.shape[1:]),
            layers.Dense(num_classes, kernel_initializer="zeros", dtype="float32"),
        ]
    )
    model.compile(
        keras.optimizers.SGD(
            LEARNING_RATE * batch_size / 256, momentum=MOMENTUM, nesterov=True
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    fields = {"x": batches.row_loader(features), "y": batches.row_loader(labels)}
    indices = example_order.shuffled_indices(len(labels), batch_size, 0, steps, seed)
    dataset = batches.training_batches(indices, fields)
    dataset = dataset.map(lambda batch: (batch["x"], batch["y"]))
    model.fit(dataset, shuffle=False, verbose=0)
    if not all(np.isfinite(weights).all() for weights in model.get_weights()):
        raise FloatingPointError(
            f"the linear classifier diverged at learning rate "
            f"{LEARNING_RATE * batch_size / 256:g}; scale the features to length 1"
        )
    return model
