import types

import numpy as np

from basic_tf.evaluation import retrieval_task


def test_the_main_metric_is_the_mean_of_both_ways():
    images = np.eye(2, dtype=np.float32)
    texts = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]], np.float32)
    pairs = images, texts, np.array([0, 0, 1])
    embedder = types.SimpleNamespace(pairs=lambda *_: pairs)
    task = types.SimpleNamespace(examples="examples", source="x", name="x")
    result = retrieval_task.evaluate(embedder, task)
    # The first image finds its first text; of the texts only the first its image.
    ways = {"image_to_text_r1": 1 / 2, "text_to_image_r1": 1 / 3}
    assert {key: result.metrics[key] for key in ways} == ways
    assert result.metrics["value"] == (1 / 2 + 1 / 3) / 2
    assert (result.kind, result.examples) == ("retrieval", "examples")
