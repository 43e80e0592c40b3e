"""What rests on a device: as AdaFactorW makes it, and split by hand."""

import math
import types

import pytest

from basic_tf.models import description, text_transformer, zoo
from basic_tf.optimizers import adafactorw
from basic_tf.training import resting_memory, sharding
from tests.models.test_values import small_coatnet


def variable(path, *shape):
    return types.SimpleNamespace(path=path, shape=shape)


def encoder(*trained, others=()):
    return types.SimpleNamespace(
        trainable_variables=list(trained), non_trainable_variables=list(others)
    )


def test_moments_are_those_that_the_optimizer_makes():
    model = small_coatnet()
    model.build((None, 16, 16, 3))
    optimizer = adafactorw.AdaFactorW()
    optimizer.build(model.trainable_variables)
    slots = [optimizer.slots(v) for v in model.trainable_variables]
    first = sum(2 * math.prod(momentum.shape) for momentum, _ in slots)
    second = sum(4 * math.prod(m.shape) for _, moments in slots for m in moments)
    assert {momentum.dtype for momentum, _ in slots} == {"bfloat16"}
    bare = description.without_weights(small_coatnet, (16, 16, 3))
    resting = resting_memory.at_rest([bare])
    assert resting.weights == 4 * model.count_params()
    assert (resting.first_moments, resting.second_moments) == (first, second)


@pytest.mark.parametrize(
    ("path", "shape", "axis"),
    [
        ("conv/kernel", (3, 3, 64, 128), 2),
        ("conv/kernel", (3, 3, 3, 4096), 3),
        ("table/embeddings", (16384, 7), 0),
        ("small/kernel", (100, 100), None),
        ("dense/bias", (65536,), None),
        ("odd/kernel", (129, 129), None),
        ("block/depthwise/kernel", (3, 3, 4096, 1), None),
        ("block/se/reduce/kernel", (1, 1, 4096, 1024), None),
        ("attention/relative_bias", (64, 27, 27), None),
        ("block/norm/gamma", (128, 128), None),
    ],
)
def test_a_weight_is_split_along_an_axis_that_divides(path, shape, axis):
    assert sharding.split_axes([variable(path, *shape)], 4) == [axis]


def test_one_device_splits_nothing():
    resting = resting_memory.at_rest([encoder(variable("dense/kernel", 512, 512))], 1)
    assert resting.split == resting.largest_split == 0


def test_split_weights_rest_in_parts_with_their_moments():
    split, whole = variable("a/kernel", 256, 128), variable("a/bias", 128)
    moving = variable("norm/moving_mean", 64)
    resting = resting_memory.at_rest([encoder(split, whole, others=[moving])], 4)
    assert resting == resting_memory.Resting(
        weights=4 * (256 * 128 // 4 + 128 + 64),
        trained=4 * (256 * 128 // 4 + 128),
        first_moments=2 * (256 * 128 // 4 + 128),
        second_moments=4 * (256 // 4 + 128 + 128),  # columns have no axis of 256
        largest=4 * 256 * 128,
        split=4 * 256 * 128,
        largest_split=4 * 256 * 128,
    )


class FourDevices:
    """Stands in for a mesh: layouts alone."""

    num_shards = num_devices = 4

    def layout(self, rank, axis=None, of_split=False):
        specs = ["model" if index == axis else "unsharded" for index in range(rank)]
        return types.SimpleNamespace(sharding_specs=specs)


def test_split_weights_rest_as_the_step_on_a_mesh_lays_them_out(monkeypatch):
    monkeypatch.setattr(sharding, "MIN_SPLIT_SIZE", 32)
    texts = text_transformer.TextTransformer(
        vocabulary_size=18,  # which 4 does not divide: split along its columns
        max_length=6,
        num_layers=1,
        width=8,
        num_heads=2,
        embedding_dim=8,
    )
    texts.build((None, 6))
    optimizer = adafactorw.AdaFactorW()
    optimizer.build(texts.trainable_variables)
    slots = types.SimpleNamespace(
        variables=optimizer.variables[2:],  # after iterations and rate
        slot_axes=optimizer.slot_axes,
    )
    trainer = types.SimpleNamespace(
        variables=texts.variables,
        metrics_variables=[],
        optimizer=slots,
        train_step=None,
    )
    step = sharding.ShardedStep(trainer, FourDevices())
    assert step.device_bytes == resting_memory.at_rest([texts], 4).total
    assert step.whole_bytes == resting_memory.at_rest([texts]).total


def test_of_basic_s_four_devices_hold_a_quarter_each_of_all_that_is_split():
    encoders = [
        encoder for encoder, _ in zoo.without_weights(zoo.configuration("basic_s"))
    ]
    whole, parts = (resting_memory.at_rest(encoders, count) for count in (1, 4))
    trained = [v for each in encoders for v in each.trainable_variables]
    split = 0
    for weight, axis in zip(trained, sharding.split_axes(trained, 4), strict=True):
        if axis is not None:
            size, rank = math.prod(weight.shape), len(weight.shape)
            split += 4 * size + 2 * size  # float32, bfloat16
            # Means over the axis that is split are whole.
            split += 4 * (size // weight.shape[-1]) * (axis != rank - 1)
            split += 4 * (size // weight.shape[-2]) * (axis != rank - 2)
    assert parts.total == split // 4 + whole.total - split
    assert parts.total <= 0.31 * whole.total
