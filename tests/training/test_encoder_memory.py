"""What is kept under rematerialization: counted by hand, and beside the values."""

import keras
import pytest
from keras import layers

from basic_tf.models import description
from basic_tf.training import encoder_memory, traced_memory
from basic_tf.training.traced_memory import Held
from tests.models.test_values import small_coatnet, small_text_transformer


def two_blocks():
    """`wide` makes 6 and 6 numbers of an example, `narrow` 2, of inputs of 3."""
    return keras.Sequential(
        [layers.Dense(6, "relu", name="wide"), layers.Dense(2, name="narrow")]
    )


@pytest.fixture(scope="module")
def coatnet():
    return description.without_weights(small_coatnet, (16, 16, 3))


@pytest.mark.parametrize(
    ("rematerialize", "numbers"),
    [("none", 6 + 6 + 2), ("weightless", 6 + 2)],
)
def test_xla_holds_each_value_once(rematerialize, numbers):
    network = description.without_weights(two_blocks, (3,))
    passes = encoder_memory.on_xla(network, (3,), rematerialize, 2)
    assert passes.kept == Held(per_example=2 * numbers)


def test_passes_hold_the_gradients_of_a_layer_beside_what_is_kept():
    network = description.without_weights(two_blocks, (3,))
    passes = encoder_memory.on_xla(network, (3,), "none", 4)
    assert passes.peak(10) == 10 * 4 * (6 + 6 + 2 + 2 * 6)


def test_values_of_rematerialization_are_those_of_the_description(coatnet):
    described = description.describe(small_coatnet, (16, 16, 3))
    for mode, expected in (
        ("none", described.activation_bytes),
        ("weightless", described.rematerialized_bytes),
    ):
        passes = encoder_memory.on_xla(coatnet, (16, 16, 3), mode, 4)
        assert passes.kept.per_example == expected


def test_blocks_keep_what_goes_from_one_to_the_next(coatnet):
    passes = encoder_memory.on_xla(coatnet, (16, 16, 3), "block", 1)
    # The image, the stem, two MBConvs, two transformers; the embedding.
    expected = 16 * 16 * 3 + 8 * 8 * 4 + 2 * (4 * 4 * 8) + 2 * (2 * 2 * 12) + 10
    assert passes.kept.per_example == expected


def test_the_less_is_kept_the_less_is_held(coatnet):
    peaks = [
        encoder_memory.on_xla(coatnet, (16, 16, 3), mode, 4).peak(32)
        for mode in ("block", "weightless", "none")
    ]
    assert peaks == sorted(peaks) and peaks[0] < peaks[-1]


def test_operations_one_by_one_hold_what_the_graph_has():
    texts = description.without_weights(small_text_transformer, (6,))
    traced = traced_memory.trace(texts, (6,))
    assert encoder_memory.one_by_one(texts, (6,), "none", 4) == traced
    weightless = encoder_memory.one_by_one(texts, (6,), "weightless", 4)
    described = description.describe(small_text_transformer, (6,))
    assert weightless.kept.per_example == described.rematerialized_bytes
    assert weightless.peak(32) < traced.peak(32)


def test_another_rematerialization_is_refused(coatnet):
    with pytest.raises(ValueError, match="'all' is none of none, weightless, block"):
        encoder_memory.on_xla(coatnet, (16, 16, 3), "all", 4)
