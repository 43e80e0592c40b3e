import keras
import numpy as np
import pytest
import scipy.special

from basic_tf.models import activations


def test_quick_gelu_agrees_with_its_closed_form():
    x = np.linspace(-6, 6, 25)
    actual = activations.quick_gelu(x)
    np.testing.assert_allclose(actual, x * scipy.special.expit(1.702 * x), rtol=1e-6)


def test_quick_gelu_is_kept_by_a_file(tmp_path):
    layers = [keras.Input((3,)), keras.layers.Activation(activations.quick_gelu)]
    model = keras.Sequential(layers)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = np.array([[-1.0, 0.5, 2.0]], "float32")
    np.testing.assert_array_equal(loaded(x), model(x))


def test_a_name_gives_clips_or_a_keras_activation():
    assert activations.activation("quick_gelu") is activations.quick_gelu
    assert activations.activation("gelu") is keras.activations.gelu


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="geluu"):
        activations.activation("geluu")
