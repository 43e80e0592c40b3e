import types

import numpy as np
import pytest

from basic_tf.evaluation import geometry_task


def test_an_image_stands_beside_the_first_of_its_captions():
    images = np.eye(3, dtype=np.float32)
    texts = images[[0, 2, 1, 2, 0]]  # each second one is of another direction
    pairs = images, texts, np.array([0, 0, 1, 2, 2])
    embedder = types.SimpleNamespace(pairs=lambda *_: pairs)
    found = geometry_task.evaluate(embedder, "x", "x", "examples").metrics
    assert found["num_pairs"] == 3
    assert found["alignment"] == pytest.approx(0, abs=1e-6)
    assert found["modality_gap"] == pytest.approx(0, abs=1e-6)
