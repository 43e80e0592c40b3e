"""What a report's page shows of a task: its confusions and a gallery of examples."""

import numpy as np

from basic_tf import data_uris
from basic_tf.data import batches
from basic_tf.evaluation import confusion

MATRIX_CLASSES = 40  # beyond, a confusion matrix is too large to read
NUM_PAIRS = 15
NUM_RIGHT, NUM_WRONG = 6, 10
SEED = 0  # of the choice of examples to show


def describe(name, result, image_size):
    """The fields of a task in the page's template.

    Args:
        name: of the task.
        result: `zero_shot.ZeroShotResult` with a ranking.
        image_size: side in pixels of the images that are shown.

    Returns:
        A dictionary.
    """
    load = batches.image_loader(result.examples, image_size)

    def image(index):
        return data_uris.of_pixels(load(index))

    predictions = result.ranking.predictions
    is_right = predictions == np.asarray(result.labels)
    generator = np.random.default_rng(SEED)
    gallery = []
    for chosen, limit in ((is_right, NUM_RIGHT), (~is_right, NUM_WRONG)):
        indices = generator.permutation(np.flatnonzero(chosen))[:limit]
        gallery += [_prediction(result, i, image(i)) for i in sorted(indices)]
    small = len(result.class_names) <= MATRIX_CLASSES
    return {
        "name": name,
        "num_classes": len(result.class_names),
        "num_wrong": int(np.sum(~is_right)),
        "image_size": image_size,
        "matrix": _matrix(result, predictions) if small else None,
        "pairs": None if small else _pairs(result, predictions, image),
        "gallery": gallery,
    }


def _prediction(result, index, image):
    """One card of the gallery."""
    label, ranking = int(result.labels[index]), result.ranking
    pairs = zip(
        ranking.top[index].tolist(), ranking.top_scores[index].tolist(), strict=True
    )
    return {
        "image": image,
        "true_name": result.class_names[label],
        "is_right": bool(ranking.ranks[index] == 0),
        "rank": int(ranking.ranks[index]) + 1,
        "true_score": float(ranking.scores[index]),
        "top": [(result.class_names[c], score, c == label) for c, score in pairs],
    }


def _matrix(result, predictions):
    """Rows `(name, total, [(predicted name, count, share of the row), ...])`."""
    names = result.class_names
    matrix = confusion.confusion_matrix(result.labels, predictions, len(names))
    totals = matrix.sum(axis=1)
    shares = matrix / np.maximum(totals, 1)[:, None]
    return [
        (name, total, list(zip(names, counts, row, strict=True)))
        for name, total, counts, row in zip(
            names, totals.tolist(), matrix.tolist(), shares.tolist(), strict=True
        )
    ]


def _pairs(result, predictions, image):
    """Rows of the table of confused pairs, each with the image of its first example."""
    names, labels = result.class_names, np.asarray(result.labels)
    pairs = []
    for true, predicted, count, share in confusion.most_confused(
        labels, predictions, len(names), NUM_PAIRS
    ):
        first = np.flatnonzero((labels == true) & (predictions == predicted))[0]
        pairs.append((names[true], names[predicted], count, share, image(first)))
    return pairs
