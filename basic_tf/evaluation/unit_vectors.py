"""What is measured on embeddings is measured on unit vectors."""

import numpy as np

TOLERANCE = 1e-3  # of the length: room for embeddings kept in half precision


def check(name, embeddings):
    """Refuses what is no set of unit vectors.

    Args:
        name: what an error calls them.
        embeddings: `[N, D]` float.

    Returns:
        The embeddings as an array.

    Raises:
        ValueError: for another shape or no row, and naming the first row that is not
            of length 1, be it NaN.
    """
    embeddings = np.asarray(embeddings)
    if embeddings.ndim != 2 or not embeddings.size:
        raise ValueError(f"{name} of shape {embeddings.shape} must be [N, D], N >= 1")
    lengths = np.sqrt(np.einsum("nd,nd->n", embeddings, embeddings, dtype=np.float64))
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= TOLERANCE))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"row {row} of {name} has length {lengths[row]:.4g}; "
            "normalise the embeddings to length 1"
        )
    return embeddings
