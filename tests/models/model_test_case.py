"""What every layer and model must do, as tests to inherit."""

import inspect
import json

import keras
import numpy as np
import pytest

from basic_tf.models import precision


def random_images(*shape):
    """`shape` float32 in [0, 1]."""
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def randomize_weights(layer, scale=0.3):
    """Replaces every weight, so that no bias, gain or moving statistic is trivial.

    Values are positive and around one where the layer starts with ones (gains, moving
    variances), normal elsewhere.
    """
    generator = np.random.default_rng(1)
    for variable in layer.variables:
        if np.issubdtype(variable.numpy().dtype, np.floating):
            starts_at_one = np.all(variable.numpy() == 1)
            noise = generator.normal(size=variable.shape, scale=scale)
            variable.assign(np.exp(noise) if starts_at_one else noise)


class ModelTestCase:
    """The tests that a class passes once a subclass says how to make and call it.

    Attributes:
        arguments: tuple of what the layer is called on; arrays, or dicts of arrays.
        output_shapes: the shape of each output, in the order of the outputs.
        mixed_dtype: dtype of the outputs under `mixed_bfloat16`.
        mixed_error: allowed norm of the outputs' change there, over their norm; a
            bfloat16 value is rounded by up to 2^-9.
    """

    arguments = ()
    output_shapes = ()
    mixed_dtype = "bfloat16"
    mixed_error = 0.03

    def make(self):
        """A fresh layer or model with the same configuration every time."""
        raise NotImplementedError

    def make_random(self):
        layer = self.make()
        layer(*self.arguments)
        randomize_weights(layer)
        return layer

    def outputs(self, layer, **options):
        return flat(layer(*self.arguments, **options))

    def test_outputs_have_their_shapes(self):
        outputs = self.outputs(self.make())
        assert [output.shape for output in outputs] == list(self.output_shapes)
        assert {output.dtype.name for output in outputs} == {"float32"}

    def test_config_round_trip_makes_the_same_layer(self):
        layer = self.make_random()
        # As a file keeps it: JSON knows no tuples.
        config = json.loads(json.dumps(layer.get_config()))
        copy = type(layer).from_config(config)
        assert json.loads(json.dumps(copy.get_config())) == config
        copy(*self.arguments)
        copy.set_weights(layer.get_weights())
        assert_equal(self.outputs(copy), self.outputs(layer))

    def test_a_keras_file_gives_equal_outputs(self, tmp_path):
        layer = self.make_random()
        expected = self.outputs(layer)
        model, arguments = layer, self.arguments
        if not isinstance(layer, keras.Model):
            model, arguments = functional(layer, self.arguments)
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        assert_equal(flat(loaded(*arguments)), expected)

    @pytest.mark.parametrize("training", [False, True])
    def test_mixed_bfloat16_is_close_to_float32(self, training):
        layer = self.make_random()
        keras.config.set_dtype_policy("mixed_bfloat16")
        mixed = self.make()
        mixed(*self.arguments)
        mixed.set_weights(layer.get_weights())
        assert {weight.dtype for weight in mixed.trainable_variables} == {"float32"}
        outputs = self.outputs(mixed, training=training)
        expected = self.outputs(layer, training=training)
        for actual, exact in zip(outputs, expected, strict=True):
            assert actual.dtype.name == self.mixed_dtype
            error = np.linalg.norm(np.float32(actual) - exact)
            assert error < self.mixed_error * np.linalg.norm(exact)

    def test_a_copy_keeps_the_precision_whatever_the_global_one(self):
        with precision.policy("mixed_bfloat16"):
            layer = self.make_random()
        copy = type(layer).from_config(json.loads(json.dumps(layer.get_config())))
        copy(*self.arguments)
        copy.set_weights(layer.get_weights())
        outputs, expected = self.outputs(copy), self.outputs(layer)
        for actual, value in zip(outputs, expected, strict=True):
            assert actual.dtype == value.dtype == self.mixed_dtype
            np.testing.assert_array_equal(np.float32(actual), np.float32(value))

    def test_a_symbolic_call_gives_the_graph_of_the_eager_call(self):
        layer = self.make_random()
        model, arguments = functional(layer, self.arguments)
        shapes = [tuple(output.shape) for output in model.outputs]
        assert shapes == [(None, *shape[1:]) for shape in self.output_shapes]
        assert_equal(flat(model(*arguments)), self.outputs(layer))

    @pytest.mark.parametrize("training", [False, True])
    def test_stateless_call_equals_call(self, training):
        layer = self.make_random()
        before = layer.get_weights()
        # Models always take the argument, layers where they need it.
        takes = "training" in inspect.signature(layer.call).parameters
        is_model = isinstance(layer, keras.Model)
        options = {"training": training} if takes or is_model else {}
        outputs, state = layer.stateless_call(
            [v.value for v in layer.trainable_variables],
            [v.value for v in layer.non_trainable_variables],
            *self.arguments,
            **options,
        )
        for weight, kept in zip(layer.get_weights(), before, strict=True):
            np.testing.assert_array_equal(weight, kept)
        assert_equal(flat(outputs), self.outputs(layer, training=training))
        for new, variable in zip(state, layer.non_trainable_variables, strict=True):
            np.testing.assert_array_equal(new, variable)


def flat(outputs):
    """The tensors of one output, or of a tuple of them."""
    return [
        keras.ops.convert_to_tensor(tensor) for tensor in keras.tree.flatten(outputs)
    ]


def functional(layer, arguments):
    """A functional model of the layer, and the arguments to call that model with."""

    def symbol(array, name=None):
        return keras.Input(array.shape[1:], dtype=array.dtype.name, name=name)

    def symbols_of(argument):
        if isinstance(argument, dict):
            return {name: symbol(array, name) for name, array in argument.items()}
        return symbol(argument)

    symbols = [symbols_of(argument) for argument in arguments]
    inputs, values = symbols, list(arguments)
    if len(arguments) == 1:
        inputs, values = symbols[0], arguments[0]
    return keras.Model(inputs, layer(*symbols)), (values,)


def assert_equal(outputs, expected):
    """The same operations on the same values: equal to float32 rounding.

    A graph may fuse or reorder sums, hence no bit for bit.
    """
    for actual, value in zip(outputs, expected, strict=True):
        scale = np.abs(value).max()
        np.testing.assert_allclose(actual, value, rtol=1e-5, atol=1e-6 * scale)
