"""The plain step over the whole batch, by Keras and one tape, gives every value."""

import keras
import numpy as np
import pytest

from tests.training import small_encoders
from tests.training.test_microbatching import (
    assert_gradients_agree,
    make_batch,
    microbatched,
    tape_over_the_batch,
)


@pytest.mark.parametrize("size", [2, 4])
def test_the_step_is_that_of_the_batch_in_one_piece(size):
    keras.utils.set_random_seed(0)
    model = small_encoders.build()
    batch = make_batch(8)
    start = model.get_weights()
    expected_loss, expected = tape_over_the_batch(model, batch, training=True)
    moved = [v.numpy() for v in model.image_encoder.non_trainable_weights]
    model.set_weights(start)
    loss, gradients, statistics = microbatched(
        model, batch, (size, 8), batch_norm="global"
    )
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    assert_gradients_agree(gradients, expected)
    for ours, theirs in zip(statistics, moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_microbatches_of_their_own_statistics_take_another_step():
    keras.utils.set_random_seed(0)
    model = small_encoders.build()
    whole, _, _ = microbatched(model, make_batch(8), (8, 8))
    parts, _, _ = microbatched(model, make_batch(8), (2, 8))
    assert abs(float(whole) - float(parts)) > 1e-3
