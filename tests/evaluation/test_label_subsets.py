import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basic_tf.evaluation import label_subsets


@st.composite
def labels_and_shots(draw):
    shots = draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(shots, 6), min_size=1, max_size=5))
    labels = np.repeat(np.arange(len(counts)) * 3, counts)
    return draw(st.permutations(labels.tolist())), shots


@given(labels_and_shots(), st.integers(0, 5))
def test_every_class_gives_as_many_examples_each_once(drawn, seed):
    labels, shots = drawn
    chosen = label_subsets.few_shot(labels, shots, seed)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    classes, counts = np.unique(np.array(labels)[chosen], return_counts=True)
    assert classes.tolist() == sorted(set(labels))
    assert (counts == shots).all()


@given(labels_and_shots(), st.integers(0, 5))
def test_fewer_shots_of_a_seed_are_a_subset_of_more(drawn, seed):
    labels, shots = drawn
    fewer, more = (
        set(label_subsets.few_shot(labels, count, seed)) for count in (1, shots)
    )
    assert fewer <= more


def test_seeds_differ_and_repeat():
    labels = np.arange(300) % 3
    first, again, other = (label_subsets.few_shot(labels, 5, s) for s in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()


def test_each_example_of_a_class_is_drawn_as_often():
    labels = np.array([0, 1, 1, 1, 1])
    drawn = [label_subsets.few_shot(labels, 1, seed)[1] for seed in range(2000)]
    counts = np.bincount(drawn, minlength=5)
    assert counts[0] == 0 and counts.sum() == 2000
    # 500 each; six standard deviations of a binomial are 116.
    assert (np.abs(counts[1:] - 500) < 116).all()


@pytest.mark.parametrize("fraction, shots", [(0.01, 2), (0.1, 20), (1.0, 200)])
def test_a_share_is_rounded_to_examples_of_a_class(fraction, shots):
    labels = np.arange(2000) % 10
    chosen = label_subsets.balanced(labels, fraction, seed=0)
    assert np.bincount(labels[chosen]).tolist() == [shots] * 10
    assert chosen.tolist() == label_subsets.few_shot(labels, shots, seed=0).tolist()


def test_a_class_with_too_few_examples_is_named():
    labels = [0] * 20 + [4] * 3 + [7] * 15
    with pytest.raises(ValueError) as error:
        label_subsets.few_shot(labels, 16, seed=0)
    assert str(error.value) == (
        "class 4 has 3 of the 16 examples asked of each class (2 classes have too "
        "few); ask for 3 or fewer"
    )


def test_a_share_of_less_than_one_of_a_class_is_refused():
    with pytest.raises(ValueError, match="1% of 40 examples are fewer than the 10 "):
        label_subsets.balanced(np.arange(40) % 10, 0.01, seed=0)


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.5])
def test_another_share_is_refused(fraction):
    with pytest.raises(ValueError, match=r"of the examples must be in \(0, 1\]"):
        label_subsets.balanced([0, 1], fraction, seed=0)


def test_no_shot_and_no_example_are_refused():
    with pytest.raises(ValueError, match="0 shots; use 1 or more"):
        label_subsets.few_shot([0, 1], 0, seed=0)
    for choose, amount in ((label_subsets.few_shot, 1), (label_subsets.balanced, 0.1)):
        with pytest.raises(ValueError, match="no labelled example to choose from"):
            choose([], amount, seed=0)
