"""The SentencePiece library gives the same ids as the tokenizer, in every graph."""

import re

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from basic_tf.data import tokenizer
from basic_tf.models import text_transformer

MAX_LENGTH = 16
TRAINING_TEXT = [
    f"a {size} {color} {name} on the {place}"
    for size in ("small", "large")
    for color in ("red", "green", "blue", "weiß")
    for name in ("cat", "dog", "Eule", "houses")
    for place in ("left", "right")
]
TEXTS = {
    "a caption": "a small red cat on the left",
    "upper case": "A SMALL Red CAT",
    "empty": "",
    "white space": " \t \n ",
    "spaces around": "   a  small   cat  ",
    "unseen letters": "zyxwvut",
    "emoji": "a red 😀🚀 cat",
    "emoji alone": "😀",
    "joined emoji": "👩‍👩‍👧‍👦 red",
    "a NUL": "a red\0cat",
    "a NUL alone": "\0",
    "500 words": " ".join(["small", "cat"] * 250),
    "one word of 500": "cat" * 500,
    "non-ASCII": "weiße Eule, naïve façade",
    "combining accents": "nai\u0308ve fac\u0327ade",
    "full width": "ｒｅｄ　ｃａｔ",
    "ligature": "ﬁne ²",
    "Chinese": "猫の写真",
    "right to left": "قطة חתול",
    "control pieces": "</s> <pad> <unk> <s>",
    "piece mark": "\u2581red\u2581cat",
    "invisible": "red\u200bcat\ufeff",
    "new lines": "red\ncat\r\n",
}
MODEL = tokenizer.train(TRAINING_TEXT, 100)
TOKENIZER = tokenizer.Tokenizer(MODEL, MAX_LENGTH)


def peer_rows(texts, model=MODEL):
    """Rows from the Python library of SentencePiece."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    rows = []
    for text in texts:
        ids = [*processor.encode(text)[: MAX_LENGTH - 1], tokenizer.END_ID]
        rows.append(ids + [tokenizer.PADDING_ID] * (MAX_LENGTH - len(ids)))
    return np.array(rows)


@pytest.mark.parametrize("name", TEXTS)
def test_ids_equal_those_of_the_python_library(name):
    actual = TOKENIZER([TEXTS[name]])
    assert actual.dtype == tf.int32
    np.testing.assert_array_equal(actual, peer_rows([TEXTS[name]]))


def test_ids_are_the_same_in_a_batch():
    texts = list(TEXTS.values())
    np.testing.assert_array_equal(TOKENIZER(texts), peer_rows(texts))


@pytest.mark.parametrize("batch_size", [1, 4])
def test_ids_are_the_same_inside_a_dataset(batch_size):
    texts = list(TEXTS.values())
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(batch_size)
    dataset = dataset.map(TOKENIZER)
    assert dataset.element_spec.shape.as_list() == [None, MAX_LENGTH]
    rows = np.concatenate(list(dataset.as_numpy_iterator()))
    np.testing.assert_array_equal(rows, peer_rows(texts))


@pytest.mark.parametrize("kind", tokenizer.KINDS)
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_ids_are_the_same_in_python_a_dataset_and_a_saved_model(
    kind, byte_fallback, tmp_path
):
    model = tokenizer.train(TRAINING_TEXT, 330, kind, byte_fallback=byte_fallback)
    ours, texts = tokenizer.Tokenizer(model, MAX_LENGTH), list(TEXTS.values())
    expected = peer_rows(texts, model)
    np.testing.assert_array_equal(ours(texts), expected)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(4).map(ours)
    rows = np.concatenate(list(dataset.as_numpy_iterator()))
    np.testing.assert_array_equal(rows, expected)
    module = tf.Module()
    spec = tf.TensorSpec([None], tf.string)
    module.encode = tf.function(ours, input_signature=[spec], autograph=False)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded.encode(tf.constant(texts)), expected)


def test_it_goes_on_working_after_a_new_seed():
    """`tf.random.set_seed` destroys the resources of TensorFlow Text."""
    texts = [TEXTS["a caption"]]
    compiled = tf.function(TOKENIZER)
    dataset = tf.data.Dataset.from_tensors(texts).repeat().map(TOKENIZER)
    iterator = iter(dataset)
    for seed in range(3):
        for rows in (compiled(texts), next(iterator), next(iter(dataset))):
            np.testing.assert_array_equal(rows, peer_rows(texts))
        tf.random.set_seed(seed)


def test_every_row_has_one_end_and_only_padding_behind_it():
    rows = TOKENIZER(list(TEXTS.values())).numpy()
    assert rows.shape == (len(TEXTS), MAX_LENGTH)
    for row in rows:
        ends = np.flatnonzero(row == tokenizer.END_ID)
        assert len(ends) == 1
        assert np.all(row[: ends[0]] > tokenizer.END_ID)
        assert np.all(row[ends[0] + 1 :] == tokenizer.PADDING_ID)


def test_a_longer_text_is_cut_before_its_end():
    uncut = tokenizer.Tokenizer(MODEL, 2000)([TEXTS["500 words"]]).numpy()[0]
    cut = TOKENIZER([TEXTS["500 words"]]).numpy()[0]
    np.testing.assert_array_equal(cut[:-1], uncut[: MAX_LENGTH - 1])
    assert cut[-1] == tokenizer.END_ID


def test_lengths_count_the_ids_of_uncut_texts_and_their_end():
    processor = sentencepiece.SentencePieceProcessor(model_proto=MODEL)
    texts = list(TEXTS.values())
    expected = [len(processor.encode(text)) + 1 for text in texts]
    np.testing.assert_array_equal(TOKENIZER.lengths(texts), expected)
    assert max(expected) > MAX_LENGTH


def test_case_and_compatibility_forms_do_not_matter():
    one, *others = TOKENIZER(
        ["red cat", "RED Cat", "ｒｅｄ　ｃａｔ", " red  cat "]
    ).numpy()
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_unseen_characters_become_the_unknown_piece():
    unseen, seen = TOKENIZER(["😀", TEXTS["a caption"]]).numpy()
    assert tokenizer.UNKNOWN_ID in unseen
    assert tokenizer.UNKNOWN_ID not in seen


def test_no_texts_give_no_rows():
    assert TOKENIZER(tf.constant([], tf.string)).shape == (0, MAX_LENGTH)


def test_the_same_text_trains_the_same_bytes():
    assert tokenizer.train(TRAINING_TEXT, 100) == MODEL
    assert tokenizer.train(iter(TRAINING_TEXT), 100) == MODEL


def test_empty_captions_do_not_change_the_model():
    assert tokenizer.train(["", *TRAINING_TEXT, " ", "\n"], 100) == MODEL


def test_a_vocabulary_that_the_text_cannot_fill_is_smaller():
    model = tokenizer.train(TRAINING_TEXT, 8000)
    size = tokenizer.Tokenizer(model, MAX_LENGTH).vocabulary_size
    assert 3 < size < 8000
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert size == processor.get_piece_size()


def test_special_ids_are_those_that_the_models_know():
    processor = sentencepiece.SentencePieceProcessor(model_proto=MODEL)
    assert processor.pad_id() == tokenizer.PADDING_ID == text_transformer.PADDING_ID
    assert processor.eos_id() == tokenizer.END_ID
    assert processor.unk_id() == tokenizer.UNKNOWN_ID
    assert processor.bos_id() == -1


@pytest.mark.parametrize("captions", [[], [""], ["", "  ", "\n\t"]])
def test_captions_without_text_are_refused(captions):
    message = re.escape("no caption holds any text: nothing to train a tokenizer on")
    with pytest.raises(ValueError, match=message):
        tokenizer.train(captions, 100)


@pytest.mark.parametrize("kind", tokenizer.KINDS)
def test_bytes_stand_for_unseen_characters(kind):
    model = tokenizer.train(TRAINING_TEXT, 300, kind, byte_fallback=True)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    row = tokenizer.Tokenizer(model, MAX_LENGTH)(["\U0001f600"]).numpy()[0].tolist()
    ids = processor.encode("\U0001f600")
    assert row[: len(ids) + 1] == [*ids, tokenizer.END_ID]
    assert tokenizer.UNKNOWN_ID not in row
    pieces = [processor.id_to_piece(index) for index in ids]
    assert pieces[-4:] == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]


def test_case_is_kept_without_folding():
    model = tokenizer.train(TRAINING_TEXT, 100, "bpe", "nmt_nfkc")
    upper, lower = tokenizer.Tokenizer(model, MAX_LENGTH)(["Eule", "eule"]).numpy()
    assert upper.tolist() != lower.tolist()


@pytest.mark.parametrize("kind", tokenizer.KINDS)
def test_a_vocabulary_that_must_be_filled_is_refused_with_what_would_do(kind):
    largest = tokenizer.Tokenizer(tokenizer.train(TRAINING_TEXT, 8000, kind), 8)
    size = largest.vocabulary_size
    with pytest.raises(ValueError, match=f"vocabulary_size 8000: .* value <= {size}"):
        tokenizer.train(TRAINING_TEXT, 8000, kind, allow_smaller=False)
    model = tokenizer.train(TRAINING_TEXT, size, kind, allow_smaller=False)
    assert tokenizer.Tokenizer(model, 8).vocabulary_size == size


def test_an_unknown_kind_or_rule_is_refused():
    with pytest.raises(ValueError, match=r"kind 'word' with .* one of unigram, bpe"):
        tokenizer.train(TRAINING_TEXT, 100, "word")
    with pytest.raises(ValueError, match=r"normalization 'nfd': .* nmt_nfkc_cf"):
        tokenizer.train(TRAINING_TEXT, 100, normalization="nfd")
