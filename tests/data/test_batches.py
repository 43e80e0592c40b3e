import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from basic_tf.data import batches, sources


def indices(num_examples, batch_size, first, last, seed=0):
    dataset = batches.shuffled_indices(num_examples, batch_size, first, last, seed)
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
        batches.shuffled_indices(8, 9, 0, 1, 0)


@pytest.fixture(scope="module")
def examples():
    rng = np.random.default_rng(0)
    files = []
    for _ in range(10):
        file = io.BytesIO()
        pixels = rng.integers(0, 256, (8, 8, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(file, "PNG")
        files.append(file.getvalue())
    return sources.Examples(
        images=files,
        captions=[f"number {i}" for i in range(10)],
        labels=[i % 3 for i in range(10)],
        label_sets=[[i % 3, 3] for i in range(10)],
        label_names=["a", "b", "c", "d"],
    )


def pixels_of(examples):
    return np.stack(
        [np.asarray(Image.open(io.BytesIO(file))) for file in examples.images]
    )


@pytest.mark.parametrize("is_kept", [False, True])
def test_images_and_labels_belong_together(examples, is_kept):
    if is_kept:
        kept = batches.keep_pixels(examples, 8)
        np.testing.assert_array_equal(kept.pixels, pixels_of(examples))
    steps = batches.shuffled_indices(10, 4, 0, 5, seed=7)
    images = batches.training_images(kept if is_kept else examples, 8, steps, seed=7)
    weights = batches.row_loader(batches.label_weights(examples))
    dataset = batches.training_batches(steps, {"labels": weights}, images)
    expected = np.stack(indices(10, 4, 0, 5, seed=7))
    for batch, index in zip(dataset, expected, strict=True):
        np.testing.assert_allclose(
            batch["image"], pixels_of(examples)[index] / 255, atol=1e-6
        )
        labels = np.zeros((4, 4))
        labels[np.arange(4), index % 3] = labels[:, 3] = 1
        np.testing.assert_array_equal(batch["labels"], labels)


def test_too_many_pixels_stay_encoded(examples, monkeypatch):
    monkeypatch.setattr(batches, "MAX_PIXEL_BYTES", 10 * 8 * 8 * 3 - 1)
    assert batches.keep_pixels(examples, 8).pixels is None


def test_augmentation_is_the_same_after_a_resume(examples):
    def images(first):
        steps = batches.shuffled_indices(10, 4, first, 6, seed=1)
        dataset = batches.training_images(
            examples, 8, steps, seed=1, augmentation={"max_rotation": 20.0}
        )
        return [images.numpy() for images in dataset]

    np.testing.assert_array_equal(images(0)[4:], images(4))
    assert np.abs(images(0)[0] - images(0)[5]).max() > 0.01


def test_evaluation_gives_every_image_once_in_order(examples):
    parts = list(batches.evaluation_batches(examples, 8, 4))
    assert [len(part) for part in parts] == [4, 4, 2]
    np.testing.assert_allclose(
        np.concatenate(parts), pixels_of(examples) / 255, atol=1e-6
    )


def test_labels_weigh_the_same_without_balance():
    examples = sources.Examples(
        [b""] * 2, [""] * 2, label_sets=[[0, 2], []], label_names=list("abc")
    )
    weights = batches.label_weights(examples)
    np.testing.assert_array_equal(weights, [[1, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize(("balance", "expected"), [(1.0, [2, 4]), (0.5, [2**0.5, 2])])
def test_a_balanced_label_weighs_as_it_is_rare(balance, expected):
    examples = sources.Examples(
        [b""] * 4,
        [""] * 4,
        label_sets=[[0, 1], [0, 2], [3], []],
        label_names=[*"abcde"],
    )
    weights = batches.label_weights(examples, balance)
    np.testing.assert_allclose(weights[0], [*expected, 0, 0, 0], rtol=1e-6)
    np.testing.assert_array_equal(weights[3], 0)


def test_pixels_are_selected_with_their_examples(examples):
    keep = [index % 2 == 1 for index in range(10)]
    selected = batches.keep_pixels(examples, 8).select(keep)
    np.testing.assert_array_equal(selected.pixels, pixels_of(examples)[1::2])
    assert selected.captions == examples.captions[1::2]


def test_pixels_kept_at_another_size_are_refused(examples):
    with pytest.raises(ValueError, match="kept at 8, not at 16"):
        batches.image_loader(batches.keep_pixels(examples, 8), 16)


def test_the_parts_of_a_batch_are_the_batch():
    whole = list(batches.shuffled_indices(50, 12, 1, 3, seed=5).as_numpy_iterator())
    parts = [
        list(batches.shuffled_indices(50, 12, 1, 3, 5, 4, own).as_numpy_iterator())
        for own in ((0, 1), (2, 3))
    ]
    for position, (step, indices) in enumerate(whole):
        own = [part for machine in parts for part in machine[2 * position :][:2]]
        assert [number for number, _ in own] == [4 * step + k for k in range(4)]
        np.testing.assert_array_equal(np.concatenate([p for _, p in own]), indices)
