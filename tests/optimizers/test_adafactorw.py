"""AdaFactorW against its equations in float64 and recorded steps of two peers."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.optimizers import adafactorw
from basic_tf.optimizers.moments import mean_squares
from basic_tf.optimizers.schedules import make_schedule
from tests.optimizers.published_adafactorw import PublishedAdaFactorW

ORACLES = pathlib.Path(__file__).parent.parent / "oracles" / "optimizers.npz"
HALF = ((".", {"decay": 0.5}),)
SHAPES = {"matrix": (6, 5), "conv": (3, 3, 4, 6), "vector": (7,), "thin": (5, 1)}
OPTIONS = {
    "plain": {"clip_threshold": None},
    "decay": {"decay": 0.2, "clip_threshold": None},
    "clip": {"clip_threshold": 0.5},
    "float32 momentum": {"momentum_dtype": "float32", "beta_1": 0.8, "beta_2": 0.95},
    "everything": {"decay": 0.1, "beta_2": 0.9, "learning_rate": 0.03},
}


def start_and_gradients(shape, steps=20):
    generator = np.random.default_rng(0)
    scale = np.exp(generator.normal(size=shape))  # rows and columns of other sizes
    gradients = generator.normal(size=(steps, *shape)) * scale
    return generator.normal(size=shape).astype("float32"), gradients.astype("float32")


def optimizer_and_variable(weight, name="kernel", **options):
    optimizer = adafactorw.AdaFactorW(**{"learning_rate": 1e-2} | options)
    variable = keras.Variable(weight, name=name)
    optimizer.build([variable])
    return optimizer, variable


def slots(optimizer):
    """Momentum and second moments of an optimizer of one variable."""
    return [v for v in optimizer.variables if "kernel" in v.path]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_twenty_steps_agree_with_the_published_update(shape, options):
    weight, gradients = start_and_gradients(shape)
    optimizer, variable = optimizer_and_variable(weight, **options)
    if weight.ndim < 2:  # gains and biases do not decay
        options = options | {"decay": 0.0}
    expected = PublishedAdaFactorW(weight, **options)

    @tf.function
    def apply(gradient):
        optimizer.apply([gradient], [variable])

    for gradient in gradients:
        apply(tf.constant(gradient))
        expected.apply(gradient)
        # Float32 roundings of 20 updates of 1 % each.
        np.testing.assert_allclose(variable, expected.weight, rtol=2e-6, atol=2e-6)
    momentum, *moments = slots(optimizer)
    np.testing.assert_array_equal(
        np.asarray(momentum.value).astype("float32"),
        expected.momentum.astype("float32"),
    )
    names = ("rows", "columns") if expected.is_factored else ("full",)
    for name, moment in zip(names, moments, strict=True):
        np.testing.assert_allclose(moment, getattr(expected, name), rtol=1e-5)


def rms(array):
    return np.sqrt(np.mean(np.square(array, dtype="float64")))


@pytest.mark.parametrize("name", ["matrix", "conv", "vector", "scalar"])
def test_moments_and_clipping_agree_with_the_recorded_adafactor_of_torch(name):
    """Six steps; torch's decay of the average and its step sizes are computed here."""
    recorded = np.load(ORACLES)
    weight = recorded[f"start/{name}"]
    shape = weight.shape
    slot_shapes = [shape]
    if adafactorw.is_factored(shape):
        slot_shapes = [shape[:-1], shape[:-2] + shape[-1:]]
    moments = tuple(tf.zeros(slot_shape) for slot_shape in slot_shapes)
    for step in range(6):
        gradient = tf.constant(recorded[f"grad/{step}/{name}"])
        beta_2 = 1 - (step + 1) ** -0.8
        squares = mean_squares(gradient, len(moments))
        moments = adafactorw.AdaFactorW(beta_2=beta_2).average(moments, squares)
        update = gradient * adafactorw.inverse_root(moments, 1.0)
        update = adafactorw.clip_by_rms(update, 1.0).numpy()
        step_size = max(1e-3, rms(weight)) * min(0.01, (step + 1) ** -0.5)
        weight = weight - step_size * update
        expected = recorded[f"torch_adafactor/{step}/{name}"]
        np.testing.assert_allclose(weight, expected, rtol=2e-6, atol=1e-6)


def test_the_first_step_of_a_factored_weight_agrees_with_recorded_big_vision():
    recorded = np.load(ORACLES)
    optimizer, variable = optimizer_and_variable(
        recorded["start/big"], clip_threshold=None
    )
    optimizer.apply([tf.constant(recorded["grad/0/big"])], [variable])
    step = recorded["start/big"] - variable.numpy()
    expected = recorded["start/big"] - recorded["timm_adafactor_bigvision/0/big"]
    # Theirs averages updates from zero, without a correction: 0.1 of the first.
    np.testing.assert_allclose(step, expected / 0.1, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize(
    "shape,second_moment",
    [
        ((40, 30), 40 + 30),
        ((3, 3, 16, 8), 9 * (16 + 8)),
        ((1, 1, 16, 8), 16 + 8),
        ((4, 7, 7), 4 * (7 + 7)),
        ((30,), 30),
        ((30, 1), 30),
        ((3, 3, 16, 1), 9 * 16),
        ((), 1),
    ],
)
def test_slots_are_rows_and_columns_in_float32_and_a_bfloat16_momentum(
    shape, second_moment
):
    optimizer, _ = optimizer_and_variable(np.zeros(shape, "float32"))
    momentum, *moments = slots(optimizer)
    assert momentum.dtype == "bfloat16" and tuple(momentum.shape) == shape
    assert {moment.dtype for moment in moments} == {"float32"}
    size = sum(int(np.prod(moment.shape)) for moment in moments)
    assert size == second_moment
    stored = [np.asarray(slot.value).nbytes for slot in (momentum, *moments)]
    assert sum(stored) == 2 * int(np.prod(shape)) + 4 * second_moment
    assert optimizer.variables == [
        optimizer.iterations,
        optimizer._learning_rate,
        momentum,
        *moments,
    ]


def test_decay_touches_no_moment():
    weight, gradients = start_and_gradients((6, 5))
    plain, one = optimizer_and_variable(weight, decay=0.0)
    decayed, other = optimizer_and_variable(weight, decay=0.3)
    for gradient in gradients:
        plain.apply([gradient], [one])
        decayed.apply([gradient], [other])
    for moment, same in zip(slots(plain), slots(decayed), strict=True):
        np.testing.assert_array_equal(moment.value, same.value)
    assert np.abs(one.numpy() - other.numpy()).max() > 0.01


def test_without_a_gradient_decay_shrinks_the_weight_and_nothing_else_moves_it():
    weight, _ = start_and_gradients((6, 5))
    optimizer, variable = optimizer_and_variable(weight, decay=0.3)
    for _ in range(5):
        optimizer.apply([tf.zeros((6, 5))], [variable])
    np.testing.assert_allclose(variable, weight * (1 - 1e-2 * 0.3) ** 5, rtol=1e-6)


def test_clipping_bounds_the_rms_of_the_update_and_only_that():
    updates = np.random.default_rng(0).normal(size=(8, 9)).astype("float32")
    large = adafactorw.clip_by_rms(tf.constant(5 * updates), 1.0)
    np.testing.assert_allclose(rms(large), 1, rtol=1e-6)
    np.testing.assert_allclose(large / updates, 1 / rms(updates), rtol=1e-5)
    small = adafactorw.clip_by_rms(tf.constant(0.1 * updates), 1.0)
    np.testing.assert_array_equal(small, np.float32(0.1) * updates)


def test_rows_without_a_gradient_stay_where_they_are():
    """Token ids that do not occur: their row moments hold nothing but epsilon."""
    weight, gradients = start_and_gradients((6, 5))
    gradients[:, 2] = 0
    optimizer, variable = optimizer_and_variable(weight)
    for gradient in gradients:
        optimizer.apply([gradient], [variable])
    assert np.all(np.isfinite(variable))
    np.testing.assert_array_equal(variable.numpy()[2], weight[2])


def test_the_sparse_gradient_of_an_embedding_is_its_dense_one():
    weight, gradients = start_and_gradients((6, 5), steps=3)
    sparse, one = optimizer_and_variable(weight, decay=0.1)
    dense, other = optimizer_and_variable(weight, decay=0.1)
    rows = [4, 1, 4]
    for gradient in gradients:
        values = tf.constant(gradient[:3])
        slices = tf.IndexedSlices(values, tf.constant(rows), dense_shape=[6, 5])
        sparse.apply([slices], [one])
        summed = np.zeros((6, 5), "float32")
        np.add.at(summed, rows, gradient[:3])
        dense.apply([summed], [other])
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_schedule_sets_the_rate_of_each_step():
    weight, gradients = start_and_gradients((6, 5))
    schedule = make_schedule("cosine", 0.1, steps=20, warmup_steps=5)
    optimizer, variable = optimizer_and_variable(weight, learning_rate=schedule)
    expected = PublishedAdaFactorW(weight)
    for step, gradient in enumerate(gradients):
        optimizer.apply([gradient], [variable])
        expected.learning_rate = float(schedule(step))
        expected.apply(gradient)
    np.testing.assert_allclose(variable, expected.weight, rtol=1e-5, atol=1e-5)


def compiled_model():
    model = keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(8, activation="relu", name="hidden"),
            keras.layers.Dense(3, name="output"),
        ]
    )
    schedule = make_schedule("cosine", 0.1, steps=20, warmup_steps=2)
    model.compile(adafactorw.AdaFactorW(schedule, decay=0.1), loss="mse")
    return model


def test_a_saved_model_continues_as_if_it_had_not_been_saved(tmp_path):
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(16, 5)).astype("float32")
    targets = generator.normal(size=(16, 3)).astype("float32")
    model = compiled_model()
    for _ in range(3):
        model.train_on_batch(inputs, targets)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    saved = model.optimizer.variables
    assert len(saved) == 1 + 4 + 2 * 2 + 2  # iterations, momenta, kernels', biases'
    assert any(np.any(np.asarray(slot.value) != 0) for slot in saved[1:])
    for slot, same in zip(saved, loaded.optimizer.variables, strict=True):
        assert slot.dtype == same.dtype
        np.testing.assert_array_equal(slot.value, same.value, err_msg=slot.path)
    for _ in range(3):
        model.train_on_batch(inputs, targets)
        loaded.train_on_batch(inputs, targets)
    for weight, same in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, same)


def test_a_config_round_trip_makes_the_same_optimizer():
    optimizer = adafactorw.AdaFactorW(
        learning_rate=0.5,
        beta_1=0.8,
        beta_2=0.7,
        decay=0.1,
        rules=HALF,
        clip_threshold=None,
        momentum_dtype="float32",
    )
    config = optimizer.get_config()
    copy = adafactorw.AdaFactorW.from_config(config)
    assert copy.get_config() == config
    assert copy.rules == HALF
