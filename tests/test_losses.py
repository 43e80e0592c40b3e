"""Double loops in float64, finite differences and a recorded peer give the losses."""

import math
import pathlib

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

from basic_tf import losses

ORACLES = pathlib.Path(__file__).parent / "oracles" / "losses.npz"
SEEDS = strategies.integers(0, 2**16)
BATCH_SIZES = strategies.integers(1, 9)
LOG_SCALES = strategies.floats(-1, math.log(100))


def unit_vectors(seed, *shape):
    vectors = np.random.default_rng(seed).normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def draw_caption_ids(seed, batch_size):
    return np.random.default_rng(seed).integers(0, 1 + batch_size // 2, batch_size)


def loop_losses(images, texts, log_scale, caption_ids=None):
    """The loss of each row and of each column, `[B]` and `[B]`, one sum at a time."""
    if caption_ids is None:
        caption_ids = range(len(images))
    rows, columns = [], []
    for i in range(len(images)):
        row = column = 0.0
        for j in range(len(images)):
            if i == j or caption_ids[i] != caption_ids[j]:
                row += math.exp(math.exp(log_scale) * (images[i] @ texts[j]))
                column += math.exp(math.exp(log_scale) * (images[j] @ texts[i]))
        positive = math.exp(log_scale) * (images[i] @ texts[i])
        rows.append(math.log(row) - positive)
        columns.append(math.log(column) - positive)
    return np.array(rows), np.array(columns)


def loop_loss(*arguments):
    return np.mean(loop_losses(*arguments))


def contrastive(images, texts, log_scale, caption_ids=None, dtype=tf.float64):
    tensors = [tf.constant(value, dtype) for value in (images, texts, log_scale)]
    loss, accuracy = losses.contrastive_loss(*tensors, caption_ids)
    return loss.numpy(), accuracy.numpy()


@hypothesis.given(BATCH_SIZES, strategies.integers(1, 8), LOG_SCALES, SEEDS)
def test_contrastive_loss_agrees_with_a_double_loop(batch_size, dim, log_scale, seed):
    images, texts = unit_vectors(seed, 2, batch_size, dim)
    expected = loop_loss(images, texts, log_scale)
    actual, _ = contrastive(images, texts, log_scale)
    # In float64; logits reach 100, and differences of them lose their leading digits.
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)
    single, _ = contrastive(images, texts, log_scale, dtype=tf.float32)
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-4)


@hypothesis.given(BATCH_SIZES, LOG_SCALES, SEEDS)
def test_pairs_of_equal_captions_leave_both_sums(batch_size, log_scale, seed):
    images, texts = unit_vectors(seed, 2, batch_size, 5)
    caption_ids = draw_caption_ids(seed, batch_size)
    expected = loop_loss(images, texts, log_scale, caption_ids)
    actual, _ = contrastive(images, texts, log_scale, caption_ids)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("caption_ids", [None, [3, 1, 3, 0, 1]])
def test_gradients_agree_with_finite_differences(caption_ids):
    images, texts = unit_vectors(1, 2, 5, 4)
    values = [images, texts, np.array(1.7)]
    tensors = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        loss, _ = losses.contrastive_loss(*tensors, caption_ids)
    for index, gradient in enumerate(tape.gradient(loss, tensors)):
        expected = np.zeros_like(values[index])
        for position in np.ndindex(expected.shape):
            step = np.zeros_like(values[index])
            step[position] = 1e-5
            sides = []
            for sign in (1, -1):
                moved = list(values)
                moved[index] = values[index] + sign * step
                sides.append(loop_loss(*moved, caption_ids))
            expected[position] = (sides[0] - sides[1]) / 2e-5
        # Central differences: an error of step^2 and of rounding over step.
        np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("case", ["n2_d4", "n8_d16", "n33_d24"])
@pytest.mark.parametrize("temperature", ["0.05", "0.1", "0.5", "1.0"])
def test_loss_and_gradients_agree_with_a_recorded_peer(case, temperature):
    recorded = np.load(ORACLES)
    name = f"{case}/clip_t{temperature}"
    scale = 1 / float(temperature)
    arrays = (recorded[f"{case}/z1"], recorded[f"{case}/z2"], math.log(scale))
    tensors = [tf.constant(array, tf.float64) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        # The peer takes vectors of any length.
        images, texts = (x / tf.norm(x, axis=1, keepdims=True) for x in tensors[:2])
        loss, _ = losses.contrastive_loss(images, texts, tensors[2])
    gradients = tape.gradient(loss, tensors)
    expected = [recorded[f"{name}_grad_{part}"] for part in ("z1", "z2", "scale")]
    expected[2] = expected[2] * scale  # theirs by exp(t), ours by t
    np.testing.assert_allclose(loss, recorded[name], rtol=1e-10)
    for actual, value in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(actual, value, rtol=1e-8, atol=1e-10)


@hypothesis.given(LOG_SCALES, SEEDS)
def test_a_batch_of_one_costs_nothing(log_scale, seed):
    images, texts = unit_vectors(seed, 2, 1, 4)
    assert contrastive(images, texts, log_scale) == (0, 1)


@pytest.mark.parametrize("batch_size", [2, 7, 64])
def test_collapsed_embeddings_cost_ln_b_and_are_not_right(batch_size):
    one = np.tile([[1.0, 0.0, 0.0]], (batch_size, 1))
    loss, accuracy = contrastive(one, one, math.log(1 / 0.07), dtype=tf.float32)
    np.testing.assert_allclose(loss, math.log(batch_size), rtol=1e-6)
    assert accuracy == 0  # every candidate ties


@pytest.mark.parametrize("seed", range(5))
def test_embeddings_collapsed_to_rounding_are_not_right_either(seed):
    one = np.tile(unit_vectors(seed, 1, 48), (32, 1))
    loss, accuracy = contrastive(one, one, math.log(100), dtype=tf.float32)
    np.testing.assert_allclose(loss, math.log(32), rtol=1e-5)
    assert accuracy < 0.2


def test_accuracy_is_the_mean_over_both_directions():
    similarities = np.array([[0.9, 0.1, 0.2], [0.8, 0.5, 0.1], [0.0, 0.6, 0.4]])
    # Rows: 0 is right. Columns: 0 and 2 are right.
    _, accuracy = contrastive(similarities, np.eye(3), 0.0)
    np.testing.assert_allclose(accuracy, (1 / 3 + 2 / 3) / 2, rtol=1e-6)


def test_accuracy_does_not_count_an_equal_caption():
    similarities = np.array([[0.1, 0.9], [0.2, 0.3]])
    _, accuracy = contrastive(similarities, np.eye(2), 0.0)
    np.testing.assert_allclose(accuracy, 1 / 4)
    _, accuracy = contrastive(similarities, np.eye(2), 0.0, [5, 5])
    assert accuracy == 1


@hypothesis.given(strategies.integers(2, 8), strategies.data(), LOG_SCALES, SEEDS)
def test_m_equal_captions_cost_at_least_ln_m(batch_size, data, log_scale, seed):
    copies = data.draw(strategies.integers(2, batch_size))
    images, texts = unit_vectors(seed, 2, batch_size, 6)
    texts[:copies] = texts[0]
    rows, columns = loop_losses(images, texts, log_scale)
    assert np.all(rows[:copies] > math.log(copies) - 1e-9)
    assert columns[:copies].mean() > math.log(copies) - 1e-9
    loss, _ = contrastive(images, texts, log_scale)
    assert loss > copies / batch_size * math.log(copies) - 1e-9


def test_perfect_embeddings_of_two_equal_captions_cost_ln_2_unless_excluded():
    embeddings = np.eye(4)[[0, 0, 1, 2]]
    loss, _ = contrastive(embeddings, embeddings, math.log(100), dtype=tf.float32)
    # Float32 logits of 100 are rounded by up to 4e-6.
    np.testing.assert_allclose(loss, 2 / 4 * math.log(2), atol=5e-6)
    loss, accuracy = contrastive(
        embeddings, embeddings, math.log(100), [4, 4, 0, 1], dtype=tf.float32
    )
    np.testing.assert_allclose(loss, 0, atol=1e-30)
    assert accuracy == 1


@hypothesis.given(strategies.permutations(range(7)), LOG_SCALES, SEEDS)
def test_the_order_of_the_pairs_does_not_matter(order, log_scale, seed):
    images, texts = unit_vectors(seed, 2, 7, 5)
    caption_ids = draw_caption_ids(seed, 7)
    expected = contrastive(images, texts, log_scale, caption_ids)
    actual = contrastive(images[order], texts[order], log_scale, caption_ids[order])
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


@hypothesis.given(BATCH_SIZES, LOG_SCALES, SEEDS)
def test_images_and_texts_can_change_places(batch_size, log_scale, seed):
    images, texts = unit_vectors(seed, 2, batch_size, 5)
    expected = contrastive(images, texts, log_scale)
    actual = contrastive(texts, images, log_scale)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def loop_nt_xent(first, second, temperature):
    """SimCLR's algorithm 1: the mean of `l(2k - 1, 2k) + l(2k, 2k - 1)` over 2N."""
    views = np.stack([first, second], axis=1).reshape(-1, first.shape[1])
    total = 0.0
    for i in range(len(views)):
        candidates = [j for j in range(len(views)) if j != i]
        logits = {j: views[i] @ views[j] / temperature for j in candidates}
        partner = i + 1 if i % 2 == 0 else i - 1
        total += math.log(sum(map(math.exp, logits.values()))) - logits[partner]
    return total / len(views)


def interleave(first, second):
    """`[N, D]` and `[N, D]` -> `[2N, D]`, as `nt_xent_loss` takes it."""
    return tf.reshape(tf.stack([first, second], axis=1), (-1, first.shape[1]))


@hypothesis.given(
    BATCH_SIZES, strategies.integers(1, 8), strategies.floats(0.02, 2), SEEDS
)
def test_nt_xent_agrees_with_a_double_loop(batch_size, dim, temperature, seed):
    first, second = unit_vectors(seed, 2, batch_size, dim)
    expected = loop_nt_xent(first, second, temperature)
    views = interleave(tf.constant(first), tf.constant(second))
    actual, _ = losses.nt_xent_loss(views, temperature)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)
    single, _ = losses.nt_xent_loss(tf.cast(views, tf.float32), temperature)
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("case", ["n2_d4", "n8_d16", "n33_d24"])
@pytest.mark.parametrize("temperature", ["0.05", "0.1", "0.5", "1.0"])
def test_nt_xent_and_its_gradients_agree_with_a_recorded_peer(case, temperature):
    recorded = np.load(ORACLES)
    name = f"{case}/ntxent_t{temperature}"
    tensors = [tf.constant(recorded[f"{case}/{part}"]) for part in ("z1", "z2")]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        views = interleave(*(x / tf.norm(x, axis=1, keepdims=True) for x in tensors))
        loss, _ = losses.nt_xent_loss(views, float(temperature))
    np.testing.assert_allclose(loss, recorded[name], rtol=1e-10)
    for part, gradient in zip(("z1", "z2"), tape.gradient(loss, tensors), strict=True):
        expected = recorded[f"{name}_grad_{part}"]
        np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_collapsed_views_cost_ln_of_the_candidates_and_one_image_nothing(batch_size):
    one = np.tile([[1.0, 0.0, 0.0]], (2 * batch_size, 1))
    loss, accuracy = losses.nt_xent_loss(tf.constant(one, tf.float32), 0.1)
    np.testing.assert_allclose(loss, math.log(2 * batch_size - 1), rtol=1e-6)
    assert accuracy == (batch_size == 1)


def test_nt_xent_accuracy_is_that_of_a_view_among_all_others():
    angles = np.radians([0, 10, 15, 90])  # the first and the last have their partner
    views = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    _, accuracy = losses.nt_xent_loss(views, 0.1)
    assert accuracy == 2 / 4


def loop_multi_label_loss(labels, logits):
    total = 0.0
    for row, scores in zip(labels, logits, strict=True):
        log_sum = math.log(sum(math.exp(score) for score in scores))
        for label, score in zip(row, scores, strict=True):
            if label:
                total += (log_sum - score) / row.sum()
    return total / len(labels)


@hypothesis.given(BATCH_SIZES, strategies.integers(2, 8), SEEDS)
def test_multi_label_softmax_loss_agrees_with_a_loop(batch_size, num_classes, seed):
    generator = np.random.default_rng(seed)
    logits = 5 * generator.normal(size=(batch_size, num_classes))
    labels = generator.integers(0, 2, (batch_size, num_classes))
    actual = losses.multi_label_softmax_loss(labels, logits.astype("float32"))
    expected = loop_multi_label_loss(labels, logits)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_a_row_without_a_label_costs_nothing_and_has_no_gradient():
    logits = tf.constant([[1.0, -2.0, 30.0], [0.0, 1.0, 2.0]])
    labels = tf.constant([[0, 0, 0], [1, 0, 1]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = losses.multi_label_softmax_loss(labels, logits)
    gradient = tape.gradient(loss, logits).numpy()
    np.testing.assert_array_equal(gradient[0], 0)
    softmax = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    np.testing.assert_allclose(gradient[1], (softmax - [0.5, 0, 0.5]) / 2, rtol=1e-5)


def test_multi_label_softmax_loss_is_computed_in_float32():
    logits = tf.constant([[300.0, 301.0, 302.0]], tf.bfloat16)  # 301 rounds to 300
    loss = losses.multi_label_softmax_loss([[1, 0, 0]], logits)
    assert loss.dtype == tf.float32
    np.testing.assert_allclose(loss, math.log(2 + math.exp(2)), rtol=1e-6)
