"""The plain step over the whole batch, by Keras and one tape, gives every value."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.training import global_batch_norm, stateless_encoder
from tests.training import small_encoders
from tests.training.test_microbatching import (
    assert_gradients_agree,
    make_batch,
    microbatched,
    tape_over_the_batch,
)


@pytest.mark.parametrize("sizes", [(2, 2), (4, 8)])
def test_the_step_is_that_of_the_batch_in_one_piece(sizes):
    keras.utils.set_random_seed(0)
    model = small_encoders.build()
    batch = make_batch(8)
    for layer in model.image_encoder.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            # Far from what the batch has, where squares about it would lose digits.
            layer.moving_mean.assign(layer.moving_mean + 30.0)
    start = model.get_weights()
    expected_loss, expected = tape_over_the_batch(model, batch, training=True)
    moved = [v.numpy() for v in model.image_encoder.non_trainable_weights]
    model.set_weights(start)
    loss, gradients, statistics = microbatched(model, batch, sizes, batch_norm="global")
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    assert_gradients_agree(gradients, expected)
    for ours, theirs in zip(statistics, moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_an_encoder_that_nothing_trains_runs_as_in_inference():
    model = small_encoders.build()
    images, _ = make_batch(8)
    encoder = stateless_encoder.StatelessEncoder(
        model.encode_image, model.image_encoder, [], batch_norm="global"
    )
    embeddings = global_batch_norm.encode(encoder, images, 2, 0).embeddings
    np.testing.assert_allclose(embeddings, model.encode_image(images), rtol=1e-5)


def test_microbatches_of_their_own_statistics_take_another_step():
    keras.utils.set_random_seed(0)
    model = small_encoders.build()
    whole, _, _ = microbatched(model, make_batch(8), (8, 8))
    parts, _, _ = microbatched(model, make_batch(8), (2, 8))
    assert abs(float(whole) - float(parts)) > 1e-3


def test_a_layer_that_is_called_twice_is_refused():
    model = small_encoders.build()
    norm = model.image_encoder.layers[2]
    assert isinstance(norm, keras.layers.BatchNormalization)
    encoder = stateless_encoder.StatelessEncoder(
        lambda inputs, training: norm(norm(inputs, training=training)),
        model.image_encoder,
        norm.trainable_variables,
        batch_norm="global",
    )
    with pytest.raises(ValueError, match="has a mask or is called twice"):
        global_batch_norm.encode(encoder, tf.ones((4, 2, 2, 5)), 2, 0)
