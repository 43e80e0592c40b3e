import keras
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.replicas import ONE_REPLICA, Replicas
from basic_tf.training import microbatching
from basic_tf.training.stateless_encoder import StatelessEncoder
from tests.training import small_encoders
from tests.training.test_microbatching import make_batch, stateless


@pytest.fixture
def model():
    return small_encoders.build()


@pytest.fixture
def random_model():
    return small_encoders.build(dropout=0.3)


def test_masks_differ_between_steps_microbatches_and_seeds(random_model):
    _, tokens = make_batch(4)
    twice = tf.concat([tokens, tokens], 0)

    def embed(step, seed=3, replicas=ONE_REPLICA):
        _, encoder = stateless(random_model, seed=seed)
        run = tf.function(
            lambda inputs: (
                microbatching.encode(encoder, inputs, 4, step, replicas).embeddings
            )
        )
        return run(twice).numpy()

    first, second = np.split(embed(0), 2)
    assert not np.allclose(first, second)
    assert not np.allclose(embed(0), embed(1))
    assert not np.allclose(embed(0), embed(0, seed=4))
    np.testing.assert_array_equal(embed(0), embed(0))
    # Microbatches are counted over all replicas.
    other = embed(0, replicas=Replicas(count=2, index=1))
    assert not np.allclose(other[:4], first) and not np.allclose(other[:4], second)


def test_a_layer_that_shares_its_seed_with_others_is_refused(model):
    class Noise(keras.layers.Layer):
        def call(self, inputs):
            return inputs + keras.random.normal(keras.ops.shape(inputs))

    encoder = keras.Sequential([keras.layers.Dense(2), Noise()], name="noisy")
    encoder.build((None, 3))
    stateless_encoder = StatelessEncoder(
        lambda inputs, training: encoder(inputs, training=training),
        encoder,
        encoder.trainable_variables,
    )
    with pytest.raises(ValueError, match="a layer of noisy assigns a variable that is"):
        microbatching.encode(stateless_encoder, tf.ones((2, 3)), 0, 0)


def test_an_unknown_batch_norm_is_refused(model):
    with pytest.raises(ValueError, match="'local' is none of microbatch, frozen"):
        list(stateless(model, batch_norm="local"))
