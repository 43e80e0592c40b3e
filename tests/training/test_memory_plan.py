"""Plans of the paper's cases, of refused ones, and of parts counted by hand."""

import pytest

from basic_tf.models import zoo
from basic_tf.training import memory_plan
from basic_tf.training.memory_plan import (
    DATA_PARALLEL,
    PIPELINING,
    SLOTS,
    SPMD,
    SPMD_BLOCK,
    SPMD_REMAT,
)

GB = 2**30
DEVICES = 2048  # cores of BASIC's table 2


def planner(name, batch_size, num_devices=1, num_model=1, device_kind="tpu"):
    configuration = zoo.configuration(name)
    configuration["precision"] = "mixed_bfloat16"
    return memory_plan.Planner(
        configuration, batch_size, num_devices, num_model, device_kind
    )


@pytest.fixture(scope="module")
def large():
    """BASIC-L as it was trained: 65,536 pairs (BASIC section 8)."""
    return planner("basic_l", 2**16, DEVICES, 4)


@pytest.fixture(scope="module")
def nano():
    return planner("basic_nano", 512, 8, 2)


def test_basic_l_takes_what_the_paper_says(large):
    """30.1 GB of 32, in microbatches of 8192 of all devices (BASIC section 8).

    The number of devices is ours: the paper does not say it.
    """
    plan = large.plan(SLOTS, 8192 // DEVICES)
    assert plan.total_bytes == pytest.approx(30.1 * GB, rel=0.15)
    assert plan.total_bytes < 32 * GB


def test_basic_l_in_one_piece_does_not_fit(large):
    assert large.plan(DATA_PARALLEL).total_bytes > 2 * 32 * GB
    assert large.largest(DATA_PARALLEL, 32 * GB) is None


def test_the_small_model_fits_whole_up_to_2_to_the_19_pairs():
    """BASIC's table 2: devices of 32 GB (ours: the paper does not say which)."""
    fits = {
        exponent: planner("basic_s", 2**exponent, DEVICES).largest(
            DATA_PARALLEL, 32 * GB
        )
        for exponent in (16, 19, 20)
    }
    assert fits[16] and fits[19] and not fits[20]


def test_memory_of_microbatches_does_not_follow_the_batch():
    """BASIC's table 2: pipelining is constant in B, SPMD grows with it."""
    small, big = (planner("basic_nano", size, 8, 2) for size in (1024, 4096))
    before = big.plan(PIPELINING, 64).parts, small.plan(PIPELINING, 64).parts
    assert before[0]["activations"] == before[1]["activations"]
    grown = big.plan(SPMD_REMAT).parts["activations"]
    assert grown == 4 * small.plan(SPMD_REMAT).parts["activations"]


def test_split_weights_take_less_and_send_more(nano):
    whole, split = nano.plan(DATA_PARALLEL), nano.plan(SPMD)
    for part in ("weights", "moments", "gradients"):
        assert split.parts[part] < whole.parts[part]
    assert split.parts["activations"] == whole.parts["activations"]
    assert split.flops == whole.flops
    assert split.wire_bytes["weights"] > whole.wire_bytes["weights"]
    assert split.wire_bytes["embeddings"] == whole.wire_bytes["embeddings"]


def test_slots_hold_less_of_gradients_than_a_buffer(large):
    buffer, slots = large.plan(PIPELINING, 4), large.plan(SLOTS, 4)
    assert slots.parts["gradients"] < buffer.parts["gradients"]
    assert slots.parts["activations"] == buffer.parts["activations"]


def test_flops_are_those_of_the_description(nano):
    forward = 2 * 512 * zoo.describe("basic_nano").multiply_adds
    passes = [
        (DATA_PARALLEL, 64, 3),
        (PIPELINING, 16, 4),
        (SLOTS, 16, 6),
        (SPMD, 64, 3),
        (SPMD_BLOCK, 64, 4),
    ]
    for strategy, size, count in passes:
        assert nano.plan(strategy, size).flops == count * forward
    assert 3 * forward < nano.plan(SPMD_REMAT).flops < 3.1 * forward


def test_the_largest_microbatch_is_the_last_that_fits(nano):
    plans = [nano.plan(PIPELINING, size) for size in (8, 16)]
    limit = plans[1].total_bytes - 1
    assert nano.largest(PIPELINING, limit) == plans[0]
    assert nano.largest(PIPELINING, limit + 1) == plans[1]
    assert nano.largest(PIPELINING, 0) is None


def test_what_is_held_between_steps_is_no_part_of_a_step(nano):
    plan = nano.plan(DATA_PARALLEL)
    between = plan.parts["weights"] + plan.parts["moments"] + plan.parts["batch"]
    assert plan.step_bytes == plan.total_bytes - between
    assert plan.parts["batch"] == 64 * 4 * (32 * 32 * 3 + 16)


def test_operations_one_by_one_hold_more_than_those_of_xla(nano):
    on_gpu = planner("basic_nano", 512, 8, 2, "gpu")
    held, fused = (
        each.plan(DATA_PARALLEL).parts["activations"] for each in (on_gpu, nano)
    )
    assert fused < held < 3 * fused


def test_a_dense_loss_holds_matrices_of_all_pairs():
    plan = planner("basic_nano", 4096).plan(PIPELINING, 1)
    assert plan.moment == "loss"
    assert 2 <= plan.parts["similarities"] / (4 * 4096**2) < 8
    streamed = planner("basic_nano", 8192).plan(PIPELINING, 1)
    assert streamed.parts["similarities"] < plan.parts["similarities"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("basic_nano", 100, 8), "8 devices do not divide batch size 100; use a mul"),
        (
            ("basic_nano", 64, 8, 3),
            "model 3 does not divide 8 devices; use one of 1, 2, 4",
        ),
        (("basic_nano", 64, 8, 1, "abacus"), "device_kind 'abacus' is none of tpu, "),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        planner(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pipelined",), "strategy 'pipelined' is none of data_parallel, pipelining"),
        ((PIPELINING, 24), "24 must be a divisor of the 64 examples of a device; use "),
        ((SLOTS, 1), "slots: microbatch size 1 must be even and a divisor of the 64"),
        ((DATA_PARALLEL, 32), "data_parallel takes the 64 examples of a device at"),
    ],
)
def test_another_plan_is_refused(nano, arguments, message):
    with pytest.raises(ValueError, match=message):
        nano.plan(*arguments)
