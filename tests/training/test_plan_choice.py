"""What fits is told, and the cheapest step is recommended."""

import pytest

from basic_tf.models import zoo
from basic_tf.training import memory_plan, plan_choice
from basic_tf.training.memory_plan import DATA_PARALLEL, PIPELINING, SLOTS, SPMD_BLOCK
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
        ("batch=8", "'batch=8' is not of the form batch:512,model:4"),
        ("batch:0", "is not of the form"),
        ("rows:8", "is not of the form"),
        ("batch:4,batch:8", "is not of the form"),
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


def test_where_all_fits_the_plain_step_is_recommended(planner):
    rows = [plan for plan, _ in plans(planner, GB).values()]
    name, sentence = plan_choice.recommend(rows, GB)
    assert name == DATA_PARALLEL
    assert sentence.startswith("Use data_parallel, 64 pairs of a device at a time")


def test_what_does_not_fit_is_not_recommended(planner):
    rows = [plan for plan, _ in plans(planner, GB).values()]
    limit = planner.plan(SPMD_BLOCK).total_bytes
    name, _ = plan_choice.recommend(rows, limit)
    assert name == SPMD_BLOCK
    name, sentence = plan_choice.recommend(rows, 0)
    assert name is None and sentence.startswith("Nothing fits in 0 GB: the least, ")
