"""timm's recorded stages and OpenCLIP's gradients, with the weights of their files."""

import pathlib
import re

import numpy as np
import pytest
import safetensors.numpy

from basic_tf.export import weights
from basic_tf.models import coatnet, timm_configurations, zoo
from tests.export import test_weights

ORACLES = pathlib.Path(__file__).parent.parent / "oracles"
PEER, CLIP = "peer_coatnet_test", "small_coatnet_clip"
OPTIONS = timm_configurations.DEFINITION | {
    "depths": (2, 1, 1, 2, 1),
    "widths": (16, 16, 32, 64, 64),
    "blocks": ("mbconv", "mbconv", "transformer", "transformer"),
    "image_size": 64,
    "head_dim": 32,
    "head": ("norm", "mean"),
    # The recorded images are normalised already.
    "mean": (0, 0, 0),
    "std": (1, 1, 1),
}
CONFIGURATION = {
    "embedding_dim": 32,
    "precision": "float32",
    "image_encoder": OPTIONS | {"kind": "coatnet", "projection_bias": False},
    "text_encoder": {
        "kind": "causal_text_transformer",
        "num_layers": 2,
        "width": 48,
        "num_heads": 3,
        "max_length": 16,
        "activation": "gelu",
    },
}
VOCABULARY_SIZE = 100


def fresh_encoder(**options):
    encoder = coatnet.CoAtNet(**OPTIONS | {"embedding_dim": 10} | options)
    encoder.build((None, 64, 64, 3))
    return encoder


def tensors_of(name):
    """Without the counters of batch norm."""
    tensors = safetensors.numpy.load_file(ORACLES / f"{name}.safetensors")
    return {k: v for k, v in tensors.items() if not k.endswith("num_batches_tracked")}


@pytest.fixture(scope="module")
def peer():
    """`(encoder with timm's weights, recorded values, images)`."""
    encoder = fresh_encoder()
    weights.load_weights(encoder, ORACLES / f"{PEER}.safetensors")
    recorded = np.load(ORACLES / f"{PEER}.npz")
    return encoder, recorded, recorded["images"].transpose(0, 2, 3, 1)


@pytest.fixture(scope="module")
def clip():
    """`(model with OpenCLIP's weights, recorded values)`."""
    model = zoo.build(CONFIGURATION, VOCABULARY_SIZE)
    weights.load_weights(model, ORACLES / f"{CLIP}.safetensors")
    return model, np.load(ORACLES / f"{CLIP}.npz")


def test_every_stage_is_that_of_timm(peer):
    encoder, recorded, x = peer
    last = np.cumsum((1, *encoder.depths[1:])) - 1  # the stem is one layer
    for index, layer in enumerate(encoder.stages):
        x = layer(x)
        if index in last:
            stage = f"stage_{list(last).index(index)}"
            of_all, of_some = recorded[f"{stage}_mean"], recorded[stage]
            np.testing.assert_allclose(np.mean(x, (1, 2)), of_all, rtol=0, atol=1e-5)
            some = np.transpose(x, (0, 3, 1, 2))[:, : of_some.shape[1]]
            np.testing.assert_allclose(some, of_some, rtol=0, atol=1e-4)


def test_the_logits_are_those_of_timm(peer):
    encoder, recorded, images = peer
    np.testing.assert_allclose(encoder(images), recorded["logits"], rtol=0, atol=1e-5)


def test_a_file_without_a_classifier_gives_the_features(peer, tmp_path):
    _, recorded, images = peer
    tensors = tensors_of(PEER)
    del tensors["head.fc.weight"], tensors["head.fc.bias"]
    safetensors.numpy.save_file(tensors, tmp_path / "a.safetensors")
    encoder = fresh_encoder(embedding_dim=None)
    weights.load_weights(encoder, tmp_path / "a.safetensors")
    np.testing.assert_allclose(encoder(images), recorded["pooled"], rtol=0, atol=1e-5)
    assert set(weights.to_state_dict(encoder)) == set(tensors)


def test_a_file_of_timm_comes_back_bit_for_bit(peer):
    assert_same(weights.to_state_dict(peer[0]), tensors_of(PEER))


def test_a_file_of_open_clip_comes_back_bit_for_bit(clip):
    assert_same(weights.to_state_dict(clip[0], custom_text=True), tensors_of(CLIP))


def assert_same(actual, expected):
    assert set(actual) == set(expected)
    for name, array in actual.items():
        np.testing.assert_array_equal(array, expected[name])


def test_every_variable_is_of_one_tensor(peer, clip):
    for model in (peer[0], clip[0]):
        tensors = weights.to_state_dict(model).values()
        count = sum(tensor.size for tensor in tensors)
        assert count == sum(weight.size for weight in model.get_weights())


def test_a_hidden_layer_has_the_name_that_it_has_in_timm():
    encoder = fresh_encoder(head=("mean", "norm", "tanh"))
    names = {name for name in weights.to_state_dict(encoder) if "head" in name}
    layers = "head.norm", "head.pre_logits.fc", "head.fc"
    assert names == {f"{name}.{part}" for name in layers for part in ("weight", "bias")}


def test_embeddings_equal_those_of_open_clip(clip):
    model, recorded = clip
    images, texts = test_weights.batch(recorded).values()
    for actual, name in (
        (model.image_encoder(images), "image_features"),
        (model.text_encoder(texts), "text_features"),
        (model.encode_image(images), "image_features_normalized"),
        (model.encode_text(texts), "text_features_normalized"),
    ):
        np.testing.assert_allclose(actual, recorded[name], rtol=0, atol=1e-5)


def test_gradients_of_the_loss_equal_those_of_open_clip(clip):
    """Recorded with the moving statistics of batch norm."""
    test_weights.assert_gradients_agree(*clip, custom_text=True)


def test_names_without_the_prefix_of_the_text_encoder_are_read_too(clip, tmp_path):
    model, _ = clip
    state_dict = weights.to_state_dict(model)
    assert "token_embedding.weight" in state_dict
    safetensors.numpy.save_file(state_dict, tmp_path / "a.safetensors")
    other = zoo.build(CONFIGURATION, VOCABULARY_SIZE)
    weights.load_weights(other, tmp_path / "a.safetensors")
    for actual, expected in zip(other.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "max"}, "with pooling 'max'; its have 'average'"),
        ({"depths": (3, 1, 1, 2, 1)}, "with depths (3, 1, 1, 2, 1); its have (2, 1, 1"),
        ({"head": ("mean", "norm")}, "with head ('mean', 'norm'); its have ('norm',"),
    ],
)
def test_another_definition_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(f"timm has no CoAtNet {message}")):
        weights.to_state_dict(fresh_encoder(**options))
