import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basic_tf.data.example_order import batch_counts, mixed_indices, shuffled_indices


def indices(num_examples, batch_size, first, last, seed=0):
    dataset = shuffled_indices(num_examples, batch_size, first, last, seed)
    return [index.numpy() for _, index in dataset]


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 40), st.integers(1, 10), st.integers(0, 5))
def test_no_epoch_holds_an_example_twice(num_examples, batch_size, seed):
    batch_size = min(batch_size, num_examples)
    steps = num_examples // batch_size
    drawn = indices(num_examples, batch_size, 0, 2 * steps, seed)
    for epoch in (drawn[:steps], drawn[steps:]):
        part = np.concatenate(epoch)
        assert len(part) == len(set(part)) == steps * batch_size
        assert set(part) <= set(range(num_examples))


@pytest.mark.parametrize("seed", [0, 1])
def test_every_example_is_as_likely_at_every_place_of_an_epoch(seed):
    epochs = 400
    drawn = np.reshape(indices(10, 8, 0, epochs, seed), (epochs, 8))
    for place in range(8):
        counts = np.bincount(drawn[:, place], minlength=10)
        # Chi-squared with 9 degrees of freedom: 34 is passed once in 10,000 tries.
        assert np.sum((counts - epochs / 10) ** 2) / (epochs / 10) < 34
    neighbours = np.abs(np.diff(drawn)) == 1
    assert np.mean(neighbours) == pytest.approx(0.2, abs=0.03)  # 18 of 90 pairs


def test_a_batch_depends_on_seed_and_step_alone():
    whole = indices(50, 8, 0, 20)
    np.testing.assert_array_equal(whole[13:], indices(50, 8, 13, 20))
    assert any(
        (a != b).any() for a, b in zip(whole, indices(50, 8, 0, 20, 1), strict=True)
    )


def test_epochs_are_shuffled_differently():
    drawn = np.concatenate(indices(64, 8, 0, 16))
    assert (drawn[:64] != drawn[64:]).any()


def test_fewer_examples_than_a_batch_are_refused():
    with pytest.raises(ValueError, match="batch_size 9 is more than the 8 examples"):
        shuffled_indices(8, 9, 0, 1, 0)


def test_the_parts_of_a_batch_are_the_batch():
    whole = list(shuffled_indices(50, 12, 1, 3, seed=5).as_numpy_iterator())
    parts = [
        list(shuffled_indices(50, 12, 1, 3, 5, 4, own).as_numpy_iterator())
        for own in ((0, 1), (2, 3))
    ]
    for position, (step, indices) in enumerate(whole):
        own = [part for machine in parts for part in machine[2 * position :][:2]]
        assert [number for number, _ in own] == [4 * step + k for k in range(4)]
        np.testing.assert_array_equal(np.concatenate([p for _, p in own]), indices)


@pytest.mark.parametrize(
    ("groups", "batch_size", "counts"),
    [
        ([(9, 1.0)], 4, [4]),
        ([(9, 3), (9, 1)], 8, [6, 2]),
        ([(9, 1), (9, 1), (9, 1)], 8, [3, 3, 2]),
        ([(9, 0.7), (9, 0.3)], 4, [3, 1]),
    ],
)
def test_a_batch_has_the_shares_of_the_weights(groups, batch_size, counts):
    assert batch_counts(groups, batch_size) == counts


def test_a_group_too_small_for_a_batch_is_refused():
    with pytest.raises(ValueError, match="8, 6 of a source, is more than the 3 exam"):
        batch_counts([(3, 3), (9, 1)], 8)
    assert batch_counts([(3, 3), (9, 1)], 4) == [
        3,
        1,
    ]  # what it says to use
    with pytest.raises(
        ValueError, match=r"no place for .* weight 0\.1; use 10 or more"
    ):
        batch_counts([(9, 0.9), (9, 0.1)], 4)


def mixed(first, last, *parts):
    groups = [(10, 1.0), (7, 2.0)]
    dataset = mixed_indices(groups, 6, first, last, 4, *parts)
    return np.stack([indices for _, indices in dataset.as_numpy_iterator()])


def test_every_batch_of_a_mixture_holds_the_shares_of_its_sources():
    drawn = mixed(0, 30)
    assert ((drawn < 10).sum(axis=1) == 2).all()
    for start, size, count in ((0, 10, 2), (10, 7, 4)):
        of_group = drawn[(drawn >= start) & (drawn < start + size)]
        epochs = of_group.reshape(-1, size // count * count)[: 30 // (size // count)]
        assert all(len(set(epoch)) == len(epoch) for epoch in epochs)
        assert set(of_group) == set(range(start, start + size))
    first = np.mean(drawn[:, 0] < 10)  # no source has a place of its own in the batch
    assert 0.1 < first < 0.6


def test_a_mixture_depends_on_seed_and_step_alone_and_is_split():
    np.testing.assert_array_equal(mixed(0, 9)[4:], mixed(4, 9))
    parts = mixed(0, 9, 2, (0, 1))
    np.testing.assert_array_equal(parts.reshape(9, 6), mixed(0, 9))
