"""OpenCLIP's recorded outputs with its weights; what does not fit changes nothing."""

import json
import pathlib
import re

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from basic_tf.export import open_clip_configuration, weights
from basic_tf.models import dual_encoder, text_transformer, zoo
from tests.export import pytorch_writer

ORACLES = pathlib.Path(__file__).parent.parent / "oracles"
NAMES = ("small_vit", "small_vit_quickgelu", "small_resnet")


def fresh_model(name):
    description = json.loads((ORACLES / f"{name}.json").read_text())["config"]
    configuration, vocabulary_size = open_clip_configuration.from_open_clip(description)
    # The recorded images are normalised already.
    configuration["image_encoder"] |= {"mean": (0, 0, 0), "std": (1, 1, 1)}
    return zoo.build(configuration, vocabulary_size)


def tensors_of(name):
    return safetensors.numpy.load_file(ORACLES / f"{name}.safetensors")


@pytest.fixture(scope="module", params=NAMES)
def oracle(request):
    """`(name, model with the peer's weights, recorded values)`."""
    model = fresh_model(request.param)
    weights.load_weights(model, ORACLES / f"{request.param}.safetensors")
    return request.param, model, np.load(ORACLES / f"{request.param}.npz")


@pytest.fixture
def model():
    return fresh_model("small_vit")


def batch(recorded):
    images = recorded["images"].transpose(0, 2, 3, 1)
    return {"image": images, "token_ids": recorded["texts"]}


def test_embeddings_equal_those_of_open_clip(oracle):
    _, model, recorded = oracle
    images, texts = batch(recorded).values()
    for actual, name in (
        (model.image_encoder(images), "image_features"),
        (model.text_encoder(texts), "text_features"),
        (model.encode_image(images), "image_features_normalized"),
        (model.encode_text(texts), "text_features_normalized"),
    ):
        # Float32 sums of a few hundred terms of about one.
        np.testing.assert_allclose(actual, recorded[name], rtol=0, atol=1e-5)


def logits_and_loss(model, inputs):
    images, texts = model(inputs)
    logits = tf.exp(model.log_scale) * tf.matmul(images, texts, transpose_b=True)
    labels = tf.range(len(logits))
    losses = [
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, side)
        for side in (logits, tf.transpose(logits))
    ]
    return logits, tf.reduce_mean(losses)


def test_gradients_of_the_loss_equal_those_of_open_clip(oracle):
    _, model, recorded = oracle
    assert_gradients_agree(model, recorded)


def assert_gradients_agree(model, recorded, custom_text=False):
    """Of the loss, with logits and loss, by the names in a file."""
    with tf.GradientTape() as tape:
        logits, loss = logits_and_loss(model, batch(recorded))
    np.testing.assert_allclose(logits, recorded["logits"], atol=2e-5)
    np.testing.assert_allclose(loss, recorded["loss"], rtol=1e-5)
    values = model.get_weights()
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        variable.assign(tf.convert_to_tensor(gradient))
    gradients = weights.to_state_dict(model, custom_text)
    model.set_weights(values)
    names = [name for name in recorded if name.startswith("grad/")]
    assert names
    for name in names:
        expected, actual = recorded[name], gradients[name.removeprefix("grad/")]
        if name.endswith("k_proj.bias"):
            # A softmax does not change with it: zero, but for rounding.
            np.testing.assert_allclose(actual, 0, atol=1e-7)
            continue
        # Float32 sums, whose terms are larger than what is left of them.
        tolerance = 1e-4 * np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def test_a_file_comes_back_bit_for_bit(oracle):
    name, model, _ = oracle
    expected = {
        key: array
        for key, array in tensors_of(name).items()
        if not key.endswith("num_batches_tracked")
    }
    actual = weights.to_state_dict(model)
    assert set(actual) == set(expected)
    for key, array in actual.items():
        assert array.dtype == expected[key].dtype == np.float32
        assert array.shape == expected[key].shape
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, expected[key])


def assert_same_weights(model, expected):
    for actual, value in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(actual, value)


def test_a_state_dict_of_pytorch_gives_the_same_weights(model, tmp_path):
    weights.load_weights(model, ORACLES / "small_vit.safetensors")
    expected = model.get_weights()
    pytorch_writer.write_state_dict(tmp_path / "a.pt", tensors_of("small_vit"))
    other = fresh_model("small_vit")
    weights.load_weights(other, tmp_path / "a.pt")
    assert_same_weights(other, expected)


def test_half_precision_is_widened(model, tmp_path):
    halves = {k: v.astype("float16") for k, v in tensors_of("small_vit").items()}
    safetensors.numpy.save_file(halves, tmp_path / "a.safetensors")
    weights.load_weights(model, tmp_path / "a.safetensors")
    for name, array in weights.to_state_dict(model).items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, halves[name].astype("float32"))


def test_masks_and_sizes_that_are_no_weights_are_passed_over(model, tmp_path):
    buffers = {
        "attn_mask": np.zeros((16, 16), "float32"),
        "input_resolution": np.array(32),
        "context_length": np.array(16),
        "vocab_size": np.array(100),
    }
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(tensors_of("small_vit") | buffers, path)
    weights.load_weights(model, path)
    expected = tensors_of("small_vit")
    for name, array in weights.to_state_dict(model).items():
        np.testing.assert_array_equal(array, expected[name])


def refuse(model, path, message):
    """Loading raises the message and leaves the model as it is."""
    before = model.get_weights()
    with pytest.raises(ValueError, match=re.escape(message)):
        weights.load_weights(model, path)
    assert_same_weights(model, before)


def test_all_that_does_not_fit_is_listed(model, tmp_path):
    tensors = tensors_of("small_vit")
    del tensors["visual.proj"], tensors["ln_final.bias"]
    tensors["logit_bias"] = np.zeros((), "float32")
    tensors["visual.ln_pre.bias"] = np.zeros((3, 4), "float32")
    tensors["text_projection"] = tensors["text_projection"].T.copy()
    tensors["ln_final.weight"] = np.ones(48, "int64")
    safetensors.numpy.save_file(tensors, tmp_path / "a.safetensors")
    message = (
        "a.safetensors does not fit the model: ln_final.bias is missing; "
        "ln_final.weight is I64, not a float; logit_bias is left over; "
        "text_projection is (32, 48), not (48, 32); "
        "visual.ln_pre.bias is (3, 4), not (64,); visual.proj is missing"
    )
    refuse(model, tmp_path / "a.safetensors", message)


def test_the_weights_of_another_model_are_refused(model):
    path = ORACLES / "small_resnet.safetensors"
    refuse(model, path, "visual.attnpool.c_proj.bias is left over")
    refuse(model, path, "visual.class_embedding is missing")


def test_a_file_of_other_names_altogether_is_told_which_are_read(model, tmp_path):
    array = np.zeros((2, 2), "float32")
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({"vision_model.encoder.weight": array}, path)
    message = "no tensor of this model; its names must be OpenCLIP's, OpenAI's or timm"
    refuse(model, path, message)


def test_an_encoder_by_itself_is_refused(model):
    path = ORACLES / "small_vit.safetensors"
    refuse(model.image_encoder, path, "a VisionTransformer by itself has no file")


def test_a_variable_without_a_name_is_refused(model, monkeypatch):
    monkeypatch.setitem(weights.TABLES, dual_encoder.DualEncoder, [])
    path = ORACLES / "small_vit.safetensors"
    refuse(model, path, "no name is known of log_scale")


def test_a_file_that_is_cut_off_is_refused(model, tmp_path):
    content = (ORACLES / "small_vit.safetensors").read_bytes()
    (tmp_path / "a").write_bytes(content[:-1])
    refuse(model, tmp_path / "a", "a is no whole safetensors or PyTorch file")


def test_a_tensor_with_a_changed_byte_is_refused(model, tmp_path):
    """The last one: what was read before it is not assigned either."""
    tensors = tensors_of("small_vit")
    path = tmp_path / "a.pt"
    pytorch_writer.write_state_dict(path, tensors)
    *_, last = tensors.values()
    content = path.read_bytes()
    position = content.rindex(last.tobytes())
    path.write_bytes(content[:position] + b"\xff" + content[position + 1 :])
    refuse(model, path, "Bad CRC-32")


def test_pickled_code_is_refused(model, tmp_path):
    command = pytorch_writer.string(f"touch {tmp_path}/made")
    attack = pytorch_writer.call(pytorch_writer.named("posix", "system"), command)
    opcodes = pytorch_writer.dictionary({"visual.proj": attack})
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {})
    refuse(model, tmp_path / "a.pt", "its pickle asks for posix.system")
    assert not (tmp_path / "made").exists()


def test_an_encoder_that_is_not_of_clip_is_refused(model):
    """Even where its variables have the names and shapes: this one averages."""
    config = model.text_encoder.get_config()
    other = text_transformer.TextTransformer(**config)
    mixed = dual_encoder.DualEncoder(model.image_encoder, other)
    mixed.build()
    refuse(
        mixed,
        ORACLES / "small_vit.safetensors",
        "CLIP has no weights for TextTransformer; it has for DualEncoder, CausalTextT",
    )


def test_the_names_of_model_and_encoders_do_not_matter():
    named = fresh_model("small_vit")
    image, text = (
        type(encoder)(**encoder.get_config() | {"name": name})
        for encoder, name in (
            (named.image_encoder, "seeing"),
            (named.text_encoder, "reading"),
        )
    )
    image.build(None)  # before it belongs to a model
    model = type(named)(image, text, name="both")
    model.build()
    weights.load_weights(model, ORACLES / "small_vit.safetensors")
    weights.load_weights(named, ORACLES / "small_vit.safetensors")
    assert_same_weights(model, named.get_weights())
