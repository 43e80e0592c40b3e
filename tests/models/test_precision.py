import keras
import pytest
from keras import layers

from basic_tf.models import precision


@precision.handed_down
class TwoLayers(layers.Layer):
    """One made at once, one when built."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.first = layers.Dense(units)

    def build(self, input_shape):
        self.first.build(input_shape)
        self.second = layers.Dense(2)
        self.second.build(self.first.compute_output_shape(input_shape))

    def call(self, inputs):
        return self.second(self.first(inputs))


def test_layers_inside_have_the_policy_of_the_layer_that_made_them():
    layer = TwoLayers(3, dtype="mixed_bfloat16")
    assert layer(keras.ops.ones((1, 4))).dtype == "bfloat16"
    assert layer.first.compute_dtype == layer.second.compute_dtype == "bfloat16"


def test_without_one_of_its_own_the_global_policy_when_it_was_made_counts():
    with precision.policy("mixed_bfloat16"):
        layer = TwoLayers(3)
    layer.build((None, 4))
    assert layer.second.compute_dtype == "bfloat16"


def test_the_global_policy_is_left_as_it_was():
    with pytest.raises(KeyError), precision.policy("mixed_bfloat16"):
        assert keras.config.dtype_policy().compute_dtype == "bfloat16"
        raise KeyError
    TwoLayers(3, dtype="mixed_bfloat16")(keras.ops.ones((1, 4)))
    assert keras.config.dtype_policy().name == "float32"
