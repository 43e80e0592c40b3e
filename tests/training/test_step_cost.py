"""Costs of steps against passes counted one by one, and rings of devices."""

import pytest

from basic_tf.training import step_cost


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({"microbatched": False}, 3),
        ({"microbatched": True}, 4),  # BASIC section 4
        ({"microbatched": True, "in_slots": True}, 6),
        ({"microbatched": False, "in_slots": True}, 3),
        ({"microbatched": False, "recomputed": 10}, 4),
    ],
)
def test_a_backward_pass_costs_two_forward_passes(options, passes):
    assert step_cost.multiply_adds(10, **options) == 10 * passes


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_a_ring_sends_every_part_on_to_all_others(devices):
    # In each of `devices - 1` rounds a device hands on one part.
    part = 48 // devices
    assert step_cost.all_gather(48, devices) == sum([part] * (devices - 1))
    assert step_cost.all_reduce(48, devices) == 2 * part * (devices - 1)


def test_split_weights_meet_within_a_copy_and_over_copies():
    # 2 copies of 4 devices: 80 bytes whole on all 8; 40 in parts of 10.
    by_hand = 2 * 80 * 7 // 8 + 2 * 10 * 1 // 2 + (2 + 1) * 40 * 3 // 4
    assert step_cost.weight_traffic(80, 40, (2, 4), gathers=2, scatters=1) == by_hand


def test_texts_are_gathered_and_their_gradients_summed():
    assert step_cost.embedding_traffic(8, 3, 4) == 3 * (8 * 3 * 4) * 3 // 4
    assert step_cost.embedding_traffic(8, 3, 1) == 0
