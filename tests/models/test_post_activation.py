import numpy as np
from keras import layers

from basic_tf.models.post_activation import PostActivationBlock
from tests.models.model_test_case import randomize_weights


class Block(PostActivationBlock):
    def residual_layers(self):
        return [layers.Dense(self.filters, name="dense")]

    def shortcut_layers(self, input_width):
        if input_width == self.filters:
            return []
        return [layers.Dense(self.filters, use_bias=False, name="project")]


def outputs_and_weights(width, filters):
    inputs = np.random.default_rng(0).normal(size=(3, width)).astype("float32")
    block = Block(filters)
    block.build(inputs.shape)
    randomize_weights(block)
    return inputs, block(inputs), [weight.numpy() for weight in block.weights]


def test_an_input_of_the_same_width_is_added_itself():
    inputs, outputs, (kernel, bias) = outputs_and_weights(4, 4)
    expected = np.maximum(inputs + inputs @ kernel + bias, 0)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)


def test_another_goes_through_the_shortcut():
    inputs, outputs, (kernel, bias, project) = outputs_and_weights(4, 6)
    expected = np.maximum(inputs @ project + inputs @ kernel + bias, 0)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
