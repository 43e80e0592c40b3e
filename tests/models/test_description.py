"""Descriptions of small encoders against the same encoders with their weights."""

import keras
import numpy as np

from basic_tf.models import description
from tests.models.test_values import small_coatnet, small_text_transformer


def test_parameters_are_those_of_the_built_model():
    texts = small_text_transformer()
    texts.build((None, 6))
    counted = description.describe(small_text_transformer, (6,)).parameters
    assert counted == texts.count_params()


def test_moving_statistics_are_not_among_the_parameters():
    images = small_coatnet()
    images.build((None, 16, 16, 3))
    counted = description.describe(small_coatnet, (16, 16, 3)).parameters
    moving = sum(np.prod(v.shape) for v in images.variables if "moving" in v.path)
    assert counted + moving == images.count_params()


def two_layers():
    return keras.Sequential(
        [keras.layers.Dense(5, "relu"), keras.layers.Dense(2, use_bias=False)]
    )


def test_a_small_network_counts_as_by_hand():
    assert description.describe(two_layers, (3,)) == description.Description(
        parameters=3 * 5 + 5 + 5 * 2,
        multiply_adds=3 * 5 + 5 * 2,
        activation_bytes=4 * (5 + 5 + 2),
        rematerialized_bytes=4 * (5 + 2),
    )


def test_activations_in_bfloat16_take_half_the_bytes():
    whole = description.describe(two_layers, (3,))
    half = description.describe(two_layers, (3,), bytes_per_value=2)
    assert half.activation_bytes * 2 == whole.activation_bytes
    assert half.rematerialized_bytes * 2 == whole.rematerialized_bytes


def test_variables_are_not_given_values_later():
    layer = description.without_weights(two_layers, (3,))
    with keras.StatelessScope():
        pass
    assert all(variable._value is None for variable in layer.variables)


def test_a_description_leaves_the_names_of_layers_alone():
    before = keras.layers.Dense(1).name
    description.describe(two_layers, (3,))
    after = keras.layers.Dense(1).name
    count = int(before.rpartition("_")[2]) if before != "dense" else 0
    assert after == f"dense_{count + 1}"
