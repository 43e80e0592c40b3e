"""What fits is told, and the cheapest step is recommended."""

import pytest

from basic_tf.models import zoo
from basic_tf.training import memory_plan, plan_choice
from basic_tf.training.memory_plan import (
    DATA_PARALLEL,
    PIPELINING,
    SLOTS,
    SPMD,
    SPMD_BLOCK,
    SPMD_REMAT,
)
from basic_tf.training.plan_choice import GB


@pytest.fixture(scope="module")
def planner():
    return memory_plan.Planner(zoo.configuration("basic_nano"), 512, 8, 2)


def plans(planner, memory_bytes, microbatch_size=None):
    rows = plan_choice.plan_all(planner, memory_bytes, microbatch_size)
    return {plan.strategy: (plan, largest) for plan, largest in rows}


def test_a_mesh_is_read_with_one_device_for_what_it_does_not_name():
    parse = plan_choice.parse_mesh
    assert parse("batch:512,model:4", 2048) == {"batch": 512, "model": 4}
    assert parse("model:4", 4) == {"batch": 1, "model": 4}
    assert parse(None, 8) == {"batch": 8, "model": 1}


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ("batch:512,model:4", "has 2048 devices; there are 8"),
        ("batch=8", "'batch=8' is not of the form batch:2,model:4"),
        ("batch:0", "'batch:0' has an axis without devices"),
    ],
)
def test_another_mesh_is_refused(mesh, message):
    with pytest.raises(ValueError, match=message):
        plan_choice.parse_mesh(mesh, 8)


def test_a_row_is_of_the_largest_microbatch_that_fits(planner):
    limit = planner.plan(PIPELINING, 16).total_bytes
    found = plans(planner, limit)
    assert list(found) == list(memory_plan.STRATEGIES)
    plan, largest = found[PIPELINING]
    assert plan.microbatch_size == largest == 16
    plan, largest = found[DATA_PARALLEL]
    assert (plan.microbatch_size, largest) == (64, None)


def test_a_row_is_of_the_microbatch_that_is_asked_for(planner):
    found = plans(planner, GB, 8)
    sizes = {name: plan.microbatch_size for name, (plan, _) in found.items()}
    assert sizes.pop(DATA_PARALLEL) == 64
    assert set(sizes.values()) == {8}
    assert SLOTS not in plans(planner, GB, 1)


def test_an_odd_size_that_is_all_of_a_device_goes_into_slots_whole():
    odd = memory_plan.Planner(zoo.configuration("basic_nano"), 24, 8)
    assert plans(odd, GB, 3)[SLOTS][0].microbatch_size == 3
    assert SLOTS not in plans(odd, GB, 1)


def test_where_all_fits_the_plain_step_is_recommended(planner):
    rows = [plan for plan, _ in plans(planner, GB).values()]
    name, sentence = plan_choice.recommend(planner, rows, GB)
    assert name == DATA_PARALLEL
    assert sentence.startswith("Use data_parallel, 64 pairs of a device at a time")
    assert sentence.endswith("which no phase trains yet: slots (on a TPU).")
    rows = [plan for plan, _ in plans(planner, GB, 8).values()]
    assert plan_choice.recommend(planner, rows, GB)[1].endswith(
        "spmd_remat (rematerialization in microbatches over more than model), "
        "spmd_block (rematerialization in microbatches over more than model)."
    )


def test_where_every_plan_can_be_trained_nothing_is_said_of_it():
    configuration = zoo.configuration("basic_nano")
    planner = memory_plan.Planner(configuration, 512, 8, 8, "cpu")
    rows = [plan for plan, _ in plans(planner, GB).values()]
    assert plan_choice.recommend(planner, rows, GB)[1].endswith("has a cheaper step.")


def test_what_does_not_fit_is_not_recommended(planner):
    rows = [plan for plan, _ in plans(planner, GB).values()]
    limit = planner.plan(SPMD_BLOCK).total_bytes
    name, _ = plan_choice.recommend(planner, rows, limit)
    assert name == SPMD_BLOCK
    name, sentence = plan_choice.recommend(planner, rows, 0)
    assert name is None and sentence.startswith("Nothing fits in 0 GB: the least, ")


@pytest.mark.parametrize(
    ("batch_size", "num_model", "device_kind", "size", "refused"),
    [
        (512, 8, "cpu", 8, []),
        (512, 2, "cpu", None, []),
        (512, 2, "cpu", 8, [SPMD_REMAT, SPMD_BLOCK]),
        (512, 8, "tpu", 8, [SLOTS]),
        (8192, 8, "gpu", 8, [SPMD, SPMD_REMAT, SPMD_BLOCK]),
    ],
)
def test_what_no_phase_trains_has_a_reason(
    batch_size, num_model, device_kind, size, refused
):
    configuration = zoo.configuration("basic_nano")
    planner = memory_plan.Planner(configuration, batch_size, 8, num_model, device_kind)
    found = plans(planner, 1e3 * GB, size).values()
    reasons = {plan.strategy: plan_choice.refusal(planner, plan) for plan, _ in found}
    assert [strategy for strategy, reason in reasons.items() if reason] == refused
