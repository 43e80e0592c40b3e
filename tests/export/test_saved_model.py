import base64
import io
import json
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run
from PIL import Image

from basic_tf.data import preprocessing, tokenizer
from basic_tf.export import saved_model
from basic_tf.models import zoo

LABELS = ["lock", "letter q", "50 % {grey}, naïve"]
TEXTS = ["a lock icon", "", "LETTER Q", "emoji 😀 " * 100]
TEMPLATES = ["{}", "a {} icon"]


def encode_files():
    rng = np.random.default_rng(0)
    files = []
    kinds = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PNG", "PNG")
    for size, kind in enumerate(kinds):
        shape = (1, 1, 3) if size == 6 else (30 + 5 * size, 45, 3)
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, shape).astype(np.uint8)).save(file, kind)
        files.append(file.getvalue())
    return files


FILES = encode_files()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """`(run, folder)` of an untrained model: equality needs no training."""
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("saved_model")
    ours = tokenizer.Tokenizer(
        tokenizer.train(["a lock icon", "letter q", "naïve grey"] * 3, 60), 16
    )
    config = tiny_run.tiny_config(folder).model.to_dict()
    run = types.SimpleNamespace(
        model=zoo.build(config, ours.vocabulary_size), tokenizer=ours, image_size=32
    )
    saved_model.ZeroShotServer(run, LABELS, TEMPLATES).save(folder)
    return run, folder


LOADER = """
import sys, json, base64
import tensorflow as tf, tensorflow_text
assert "basic_tf" not in sys.modules
model = tf.saved_model.load(sys.argv[1])
request = json.load(sys.stdin)
files = [base64.b64decode(file) for file in request["files"]]
s = model.signatures
texts = s["encode_text"](texts=tf.constant(request["texts"]))
answer = {
    "texts": texts["embeddings"],
    "token_ids": texts["token_ids"],
    "one": s["encode_image"](image_bytes=tf.constant(files[:1]))["embeddings"],
    "all": s["encode_image"](image_bytes=tf.constant(files))["embeddings"],
}
default = s["serving_default"](image_bytes=tf.constant(files))
chosen = s["classify"](image_bytes=tf.constant(files), labels=default["labels"])
answer |= {"default": default["scores"], "chosen": chosen["scores"]}
answer = {name: value.numpy().tolist() for name, value in answer.items()}
answer["labels"] = [label.decode() for label in default["labels"].numpy()]
json.dump(answer, sys.stdout)
"""


@pytest.fixture(scope="module")
def answer(exported):
    """What a fresh process without basic_tf gets from the SavedModel."""
    request = {
        "files": [base64.b64encode(file).decode() for file in FILES],
        "texts": TEXTS,
    }
    process = subprocess.run(
        [sys.executable, "-c", LOADER, str(exported[1])],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=exported[1],
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_embeddings_equal_python_for_one_and_seven(exported, answer):
    run, _ = exported
    images = [preprocessing.load_image(tf.constant(file), 32) for file in FILES]
    expected = run.model.encode_image(tf.stack(images))
    np.testing.assert_allclose(answer["all"], expected, atol=1e-5)
    np.testing.assert_allclose(answer["one"], expected[:1], atol=1e-5)
    texts = run.model.encode_text(run.tokenizer(TEXTS))
    np.testing.assert_allclose(answer["texts"], texts, atol=1e-5)


def test_scores_are_the_softmax_of_scaled_cosines(exported, answer):
    run, _ = exported
    weights = []
    for label in LABELS:
        texts = [label, f"a {label} icon"]
        mean = np.mean(run.model.encode_text(run.tokenizer(texts)), axis=0)
        weights.append(mean / np.linalg.norm(mean))
    logits = np.array(answer["all"]) @ np.array(weights).T / 0.07
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer["default"], expected, rtol=1e-4)
    np.testing.assert_allclose(answer["chosen"], expected, rtol=1e-4)
    assert answer["labels"] == LABELS


def test_token_ids_equal_those_of_tf_data(exported, answer):
    run, _ = exported
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(run.tokenizer)
    expected = np.concatenate(list(dataset.as_numpy_iterator()))
    np.testing.assert_array_equal(answer["token_ids"], expected)
