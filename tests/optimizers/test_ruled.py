"""What the rules say of a variable is what its optimizer does, by AdaFactorW."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.models import coatnet, dual_encoder, text_transformer
from basic_tf.optimizers import adafactorw


@pytest.fixture(scope="module")
def model():
    images = coatnet.CoAtNet(
        depths=(2, 1, 1),
        widths=(4, 8, 8),
        strides=(2, 2, 1),
        blocks=("mbconv", "transformer"),
        embedding_dim=6,
        image_size=8,
        head_dim=4,
    )
    texts = text_transformer.TextTransformer(
        vocabulary_size=10,
        max_length=8,
        num_layers=1,
        width=8,
        num_heads=2,
        embedding_dim=6,
    )
    model = dual_encoder.DualEncoder(images, texts)
    model.build()
    return model


def test_gains_biases_and_the_temperature_do_not_decay_and_all_else_does(model):
    rate, decay = 0.01, 0.5
    optimizer = adafactorw.AdaFactorW(rate, decay=decay)
    variables = model.trainable_variables
    for variable in variables:
        variable.assign(np.full(variable.shape, 2.0))
    optimizer.build(variables)
    zeros = [tf.zeros(variable.shape) for variable in variables]
    optimizer.apply(zeros, variables)
    names = set()
    for variable in variables:
        name = variable.path.split("/")[-1]
        names.add(name)
        exempt = name in ("bias", "gamma", "beta", "log_scale")
        expected = 2.0 if exempt else 2.0 * (1 - rate * decay)
        np.testing.assert_allclose(variable, expected, rtol=1e-6, err_msg=variable.path)
    assert names >= {"kernel", "embeddings", "relative_bias", "gamma", "log_scale"}


def test_a_variable_without_a_rule_is_named():
    optimizer = adafactorw.AdaFactorW(rules=(("kernel", {}),))
    with pytest.raises(ValueError, match=r"1 do not: phase \(0 patterns\)"):
        optimizer.build([keras.Variable(np.zeros(3), name="phase")])
    kernel = keras.Variable(np.ones((2, 2)), name="kernel")
    optimizer.build([kernel])  # what was refused has left nothing behind
    optimizer.apply([tf.ones((2, 2))], [kernel])


def test_rules_scale_decay_and_learning_rate():
    variable = keras.Variable(np.full((3, 4), 2.0), name="kernel")
    rules = (("kernel", {"decay": 0.5, "learning_rate": 0.1}),)
    optimizer = adafactorw.AdaFactorW(1e-2, decay=0.3, rules=rules)
    optimizer.build([variable])
    optimizer.apply([tf.zeros((3, 4))], [variable])
    np.testing.assert_allclose(variable, 2 * (1 - 0.1 * 1e-2 * 0.5 * 0.3), rtol=1e-6)


def test_a_variable_that_its_rule_does_not_train_is_refused():
    optimizer = adafactorw.AdaFactorW(rules=(("kernel", {"train": False}),))
    with pytest.raises(ValueError, match="kernel is not trained, by its rule"):
        optimizer.build([keras.Variable(np.ones((2, 2)), name="kernel")])


@pytest.mark.parametrize("option", ["weight_decay", "gradient_accumulation_steps"])
def test_options_of_keras_for_the_same_purpose_are_refused(option):
    with pytest.raises(ValueError, match=f"{option} is Keras's, for all variables"):
        adafactorw.AdaFactorW(**{option: 2})


@pytest.mark.parametrize("options", [{"use_ema": True}, {"loss_scale_factor": 2.0}])
def test_options_that_a_step_does_not_heed_are_refused(options):
    (option,) = options
    with pytest.raises(ValueError, match=f"{option} has no place in this step"):
        adafactorw.AdaFactorW(**options)


def test_a_variable_with_a_constraint_is_refused():
    dense = keras.layers.Dense(2, kernel_constraint="non_neg", name="dense")
    dense.build((None, 3))
    with pytest.raises(ValueError, match="dense/kernel has a constraint, which a step"):
        adafactorw.AdaFactorW().build(dense.trainable_variables)


@pytest.mark.parametrize(
    "options", [{}, {"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"clipvalue": 0.1}]
)
def test_a_step_is_what_keras_applies(options):
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape) for shape in ((3, 4), (4,))]
    gradients = [tf.constant(value, tf.float32) for value in start]
    ends = []
    for take in ("apply", "step"):
        optimizer = adafactorw.AdaFactorW(0.1, clip_threshold=None, **options)
        variables = [keras.Variable(value, name="kernel") for value in start]
        optimizer.build(variables)
        for _ in range(2):
            given = (True,) if take == "step" else ()
            getattr(optimizer, take)(*given, gradients, variables)
        ends.append([*variables, *optimizer.variables])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(
            np.float32(one.numpy()), np.float32(other.numpy()), rtol=1e-6, atol=1e-7
        )
