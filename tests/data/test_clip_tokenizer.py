"""OpenCLIP's recorded ids, and KerasHub's tokenizer with a small vocabulary."""

import collections
import gzip
import itertools
import json
import pathlib

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import clip_tokenizer

ORACLES = pathlib.Path(__file__).parent.parent / "oracles" / "clip_tokenizer.json"
RECORDED = json.loads(ORACLES.read_text())
CAPTIONS = RECORDED["captions"]
# How a vocabulary spells bytes: those that do not print follow each other from U+0100.
CHARACTERS = {
    byte: chr(byte) for byte in (*range(33, 127), *range(161, 173), *range(174, 256))
}
CHARACTERS |= {
    byte: chr(256 + index)
    for index, byte in enumerate(b for b in range(256) if b not in CHARACTERS)
}


def vocabulary_of(merges):
    return "\n".join(["a title", *merges, ""]).encode()


def full_vocabulary():
    """As many merges as CLIP has: those that the captions need, where they stand.

    Control characters, which no caption keeps, make up the others.
    """
    letters = [CHARACTERS[byte] for byte in range(30)]
    ends = [*letters, *(f"{letter}</w>" for letter in letters)]
    pairs = list(itertools.product(letters, letters))
    fillers = itertools.chain(
        (f"{left} {right}" for left, right in itertools.product(letters, ends)),
        (f"{a}{b} {right}" for (a, b), right in itertools.product(pairs, ends)),
    )
    recorded = RECORDED["merges"]
    count = RECORDED["vocab_size"] - 2 * 256 - 2
    return vocabulary_of(
        recorded.get(str(rank)) or next(fillers) for rank in range(count)
    )


VOCABULARY = full_vocabulary()


@pytest.fixture(scope="module")
def clip():
    return clip_tokenizer.ClipTokenizer(VOCABULARY)


@pytest.mark.parametrize("length", [77, 16])
def test_rows_equal_those_of_open_clip(length):
    tokenizer = clip_tokenizer.ClipTokenizer(VOCABULARY, length)
    rows = tokenizer(CAPTIONS)
    assert rows.dtype == tf.int32
    np.testing.assert_array_equal(rows, RECORDED[f"context_{length}"])


@pytest.mark.parametrize("index", [0, 3, 11, 16])
def test_a_text_alone_has_the_ids_that_it_has_in_a_batch(clip, index):
    expected = RECORDED["context_77"][index : index + 1]
    np.testing.assert_array_equal(clip(CAPTIONS[index : index + 1]), expected)


def test_lengths_count_the_ids_of_uncut_texts_and_both_ends(clip):
    expected = [len(ids) + 2 for ids in RECORDED["encode"]]
    np.testing.assert_array_equal(clip.lengths(CAPTIONS), expected)


def test_the_vocabulary_has_the_size_of_clip_whatever_follows_in_its_file(clip):
    assert clip.vocabulary_size == RECORDED["vocab_size"]
    longer = clip_tokenizer.ClipTokenizer(VOCABULARY + b"no merge at all\n")
    assert longer.vocabulary_size == RECORDED["vocab_size"]


def test_a_compressed_vocabulary_is_the_same(clip):
    packed = clip_tokenizer.ClipTokenizer(gzip.compress(VOCABULARY, 1))
    np.testing.assert_array_equal(packed(CAPTIONS), clip(CAPTIONS))


def test_ids_are_the_same_inside_a_dataset(clip):
    dataset = tf.data.Dataset.from_tensor_slices(CAPTIONS).batch(4).map(clip)
    assert dataset.element_spec.shape.as_list() == [None, 77]
    rows = np.concatenate(list(dataset.as_numpy_iterator()))
    np.testing.assert_array_equal(rows, RECORDED["context_77"])


def test_a_batch_of_static_size_stays_one(clip):
    dataset = tf.data.Dataset.from_tensor_slices(CAPTIONS)
    dataset = dataset.batch(4, drop_remainder=True).map(clip)
    assert dataset.element_spec.shape.as_list() == [4, 77]


def test_ids_are_the_same_in_a_saved_model(clip, tmp_path):
    module = tf.Module()
    spec = tf.TensorSpec([None], tf.string)
    module.encode = tf.function(clip, input_signature=[spec], autograph=False)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    rows = loaded.encode(tf.constant(CAPTIONS))
    np.testing.assert_array_equal(rows, RECORDED["context_77"])


def test_no_texts_give_no_rows(clip):
    assert clip(tf.constant([], tf.string)).shape == (0, 77)


def train_merges(words, count):
    """Byte pairs by frequency, the way of Sennrich et al. 2016, one word at a time."""
    spelled = []
    for word in words:
        *first, last = (CHARACTERS[byte] for byte in word.encode())
        spelled.append([*first, f"{last}</w>"])
    merges = []
    for _ in range(count):
        pairs = collections.Counter(
            pair for word in spelled for pair in itertools.pairwise(word)
        )
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(" ".join(best))
        for word in spelled:
            for index in range(len(word) - 2, -1, -1):
                if tuple(word[index : index + 2]) == best:
                    word[index : index + 2] = ["".join(best)]
    return merges


WORDS = (
    "banana bandana naïve café cab abba aaaa baobab 猫の 猫 12 !! ... ?! can't".split()
)


def test_random_texts_have_the_ids_of_keras_hub():
    merges = train_merges(WORDS, 60)
    characters = list(CHARACTERS.values())
    pieces = [*characters, *(f"{character}</w>" for character in characters)]
    pieces += [merge.replace(" ", "") for merge in merges]
    pieces += ["<|startoftext|>", "<|endoftext|>"]
    assert len(set(pieces)) == len(pieces)
    peer = keras_hub.tokenizers.CLIPTokenizer(
        {piece: index for index, piece in enumerate(pieces)}, merges
    )
    generator = np.random.default_rng(0)
    letters = list("aaabbcn éï猫の12!?.' Ä😀\u00a0\u2003²½'t")
    texts = [
        "".join(generator.choice(letters, size))
        for size in generator.integers(1, 40, 300)
    ]
    texts += [" ".join(generator.choice(WORDS, 5)) for _ in range(100)]
    tokenizer = clip_tokenizer.ClipTokenizer(vocabulary_of(merges), max_length=200)
    assert tokenizer.vocabulary_size == len(pieces)
    for text, row in zip(texts, tokenizer(texts).numpy(), strict=True):
        expected = [len(pieces) - 2, *map(int, peer(text)), len(pieces) - 1]
        assert row[: len(expected)].tolist() == expected, text
        assert not row[len(expected) :].any()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("“Quoted” and ‘so’", "\"quoted\" and 'so'"),
        ("donâ€™t, â€œheyâ€\x9d", 'don\'t, "hey"'),
        ("ﬁne ﬂuﬀ", "fine fluff"),
        ("a\x00b\ufeffc\x1bd", "abcd"),
        ("nai\u0308ve ÇA", "naïve ça"),
        ("ΟΔΟΣ İß", "ΟΔΟΣ İß".lower()),
        ("&amp;amp;lt;b&amp;gt; &quot;&#39;&#039;&apos;&nbsp;.", "<b> \"''' ."),
    ],
)
def test_text_is_cleaned(text, cleaned):
    assert clip_tokenizer.clean([text]).numpy()[0].decode() == cleaned


def test_every_other_value_of_a_run_is_taken():
    mask = [int(bit) for bit in "0111101001111100110"]
    expected = [int(bit) for bit in "0101001001010100100"]
    actual = clip_tokenizer.every_other(tf.constant(mask) == 1)
    np.testing.assert_array_equal(actual, np.array(expected, bool))


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        (["a b", "abc d"], "line 3 of the vocabulary, 'abc d', is no merge of two pie"),
        (["a b c"], "line 2 of the vocabulary, 'a b c', is no merge of two pieces"),
        (["a b", "", "c d"], "line 3 of the vocabulary, '', is no merge of two pieces"),
        ([], "the vocabulary holds no merge"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(merges, message):
    with pytest.raises(ValueError, match=message):
        clip_tokenizer.ClipTokenizer(vocabulary_of(merges))


def test_a_compressed_vocabulary_that_is_cut_off_is_refused():
    content = gzip.compress(vocabulary_of(["a b"]))[:-9]
    with pytest.raises(ValueError, match="the vocabulary cannot be unpacked: "):
        clip_tokenizer.ClipTokenizer(content)
