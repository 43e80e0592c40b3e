"""CLIP's byte-pair encoding (Sennrich et al. 2016) in TensorFlow ops, in any graph.

A symbol is a number from the start: bytes, bytes that end a word, then the merges in
the order of the vocabulary. So a merge of a lower number comes first, and a table of
pairs is all that the encoding needs.
"""

import gzip
import zlib

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

PADDING_ID = 0
NUM_BYTES = 256
MAX_MERGES = 49_152 - NUM_BYTES - 2  # CLIP reads no more of its file
START, END = "<start_of_text>", "<end_of_text>"
NO_MERGE = 2**30

# CLIP numbers the bytes that print as Latin-1 before the others.
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTES = (*_PRINTED, *(byte for byte in range(NUM_BYTES) if byte not in _PRINTED))
_ID_OF_BYTE = np.argsort(_BYTES).astype("int32")

# RE2's own `\s` is ASCII; separators of Unicode are no words either.
_WORD = (
    rf"{START}|{END}|'s|'t|'re|'ve|'m|'ll|'d|\p{{L}}+|\p{{N}}"
    r"|[^\s\x{85}\p{Z}\p{L}\p{N}]+"
)
_ENTITIES = (
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", '"'),
    ("&#0*39;|&apos;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),  # the last: one round makes `&lt;` of `&amp;lt;`
)
_TYPOGRAPHY = (
    # Quotes whose UTF-8 was read as Latin-1 or as Windows-1252.
    (r"â[\x{80}€][\x{98}\x{99}˜™]", "'"),
    (r"â[\x{80}€][\x{9c}\x{9d}œ]", '"'),
    (r"[\x00-\x08\x0b\x0e-\x1f\x7f\x{206a}-\x{206f}\x{feff}\x{fff9}-\x{fffc}]", ""),
    (r"[\x{2bc}\x{2018}-\x{201b}]", "'"),
    (r"[\x{201c}-\x{201f}]", '"'),
    *(("ﬀ", "ff"), ("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬃ", "ffi"), ("ﬄ", "ffl"), ("ﬆ", "st")),
)


class ClipTokenizer:
    """Texts to rows of CLIP's ids, the same in Python, `tf.data` and a SavedModel.

    Ids are those of OpenCLIP, but where its cleaning by ftfy does more than `clean`.

    Args:
        model: content of CLIP's `bpe_simple_vocab_16e6.txt`, compressed or not: a
            title, then a merge a line, the first to be made before the others.
        max_length: L, length of a row, start and end of the text included.

    Raises:
        ValueError: if `model` has a line that is no merge of two pieces before it, or
            no merge.
    """

    def __init__(self, model, max_length=77):
        self.model = model
        self.max_length = max_length
        keys = read_merges(model)
        order = np.argsort(keys)
        self._keys = keys[order]
        self._merged = (order + 2 * NUM_BYTES).astype("int32")
        self._start_id = len(keys) + 2 * NUM_BYTES
        self._end_id = self._start_id + 1

    @property
    def vocabulary_size(self):
        return self._end_id + 1

    def __call__(self, texts):
        """`[N]` strings -> `[N, L]` int32 padded with 0.

        Every row starts with the start-of-text id and holds an end-of-text id; a longer
        text is cut before it.
        """
        texts = tf.convert_to_tensor(texts, tf.string)
        ids = self._encode(texts)[:, : self.max_length - 2]
        starts = tf.fill([ids.nrows(), 1], self._start_id)
        ends = tf.fill([ids.nrows(), 1], self._end_id)
        ids = tf.concat([starts, ids, ends], axis=1)
        rows = ids.to_tensor(PADDING_ID, shape=[None, self.max_length])
        # Rows that are split and joined lose a static N, which microbatches need.
        return tf.ensure_shape(rows, [texts.shape[0], self.max_length])

    def lengths(self, texts):
        """`[N]` strings -> `[N]` int: ids of each text, both ends included, uncut."""
        return self._encode(texts).row_lengths() + 2

    def _encode(self, texts):
        """`[N]` strings -> ragged `[N, ?]` int32, without the ends."""
        words = split_words(clean(texts))
        is_start, is_end = words.flat_values == START, words.flat_values == END
        # A word that is one symbol already: any byte may stand for it.
        spelled = tf.where(is_start | is_end, "s", words.flat_values)
        characters = tf.strings.bytes_split(spelled)
        word_of = characters.value_rowids()
        values = tf.reshape(tf.io.decode_raw(characters.flat_values, tf.uint8), [-1])
        symbols = tf.gather(_ID_OF_BYTE, tf.cast(values, tf.int32))
        following = tf.concat([word_of[1:], [-1]], axis=0)[: tf.size(symbols)]
        symbols += NUM_BYTES * tf.cast(word_of != following, tf.int32)
        symbols = tf.where(tf.gather(is_start, word_of), self._start_id, symbols)
        symbols = tf.where(tf.gather(is_end, word_of), self._end_id, symbols)
        symbols, word_of = self._merge(symbols, word_of)
        text_of = tf.gather(words.value_rowids(), word_of)
        return tf.RaggedTensor.from_value_rowids(symbols, text_of, words.nrows())

    def _merge(self, symbols, word_of):
        """Makes the first possible merge of each word, everywhere, until none is left.

        Args:
            symbols: `[n]` int32, those of all words.
            word_of: `[n]` int64, the word of each, ascending.

        Returns:
            The same of the symbols that are left.
        """

        def step(symbols, word_of, _):
            pair = self._merge_of(symbols[:-1], symbols[1:])
            pair = tf.where(word_of[:-1] == word_of[1:], pair, NO_MERGE)
            first = tf.math.unsorted_segment_min(
                pair, word_of[:-1], tf.cast(word_of[-1] + 1, tf.int32)
            )
            is_first = (pair == tf.gather(first, word_of[:-1])) & (pair < NO_MERGE)
            is_made = every_other(is_first)
            symbols = tf.concat(
                [tf.where(is_made, pair, symbols[:-1]), symbols[-1:]], axis=0
            )
            is_kept = tf.concat([[True], ~is_made], axis=0)
            return (
                tf.boolean_mask(symbols, is_kept),
                tf.boolean_mask(word_of, is_kept),
                tf.reduce_any(is_made),
            )

        unknown = tf.TensorShape([None])
        return tf.while_loop(
            lambda symbols, word_of, is_changed: is_changed,
            step,
            (symbols, word_of, tf.size(symbols) > 0),
            shape_invariants=(unknown, unknown, tf.TensorShape([])),
        )[:2]

    def _merge_of(self, left, right):
        """The symbol of each pair, or `NO_MERGE`.

        A sorted table, as a constant of the graph: there is no resource to be lost.
        """
        keys = pair_key(tf.cast(left, tf.int64), tf.cast(right, tf.int64))
        index = tf.searchsorted(self._keys, keys)
        index = tf.minimum(index, len(self._keys) - 1)
        is_known = tf.gather(self._keys, index) == keys
        return tf.where(is_known, tf.gather(self._merged, index), NO_MERGE)


def read_merges(model):
    """`pair_key` of each merge of a vocabulary, int64, in their order."""
    if model[:2] == b"\x1f\x8b":
        try:
            model = gzip.decompress(model)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"the vocabulary cannot be unpacked: {error}") from None
    lines = model.decode(errors="replace").split("\n")[1 : MAX_MERGES + 1]
    spare = iter(range(NUM_BYTES, 2 * NUM_BYTES))
    characters = [chr(byte if byte in _PRINTED else next(spare)) for byte in _BYTES]
    pieces = [*characters, *(f"{character}</w>" for character in characters)]
    ids = {piece: index for index, piece in enumerate(pieces)}
    keys = []
    for number, line in enumerate(lines, start=2):
        parts = line.split()
        if not parts and number == len(lines) + 1:
            break  # the end of the last line
        if len(parts) != 2 or not ids.keys() >= set(parts):
            raise ValueError(
                f"line {number} of the vocabulary, {line[:40]!r}, is no merge of two "
                "pieces before it"
            )
        keys.append(pair_key(*(ids[part] for part in parts)))
        ids.setdefault("".join(parts), len(keys) - 1 + 2 * NUM_BYTES)
    if not keys:
        raise ValueError("the vocabulary holds no merge")
    return np.array(keys, "int64")


def pair_key(left, right):
    """One number for a pair of symbols."""
    return left * 2**32 + right


def clean(texts):
    """`[N]` strings in lower case, composed (NFC), with plain quotes and ligatures.

    Of what ftfy and `html.unescape` do before CLIP's tokenizer: the commonest names of
    HTML characters, three times over; quotes, also wrongly decoded ones; ligatures;
    control characters. Other text that was decoded wrongly, full-width letters and
    rarer names stay as they are.
    """
    for pattern, character in _ENTITIES * 3 + _TYPOGRAPHY:
        texts = tf.strings.regex_replace(texts, pattern, character)
    texts = tf_text.normalize_utf8(texts, "NFC")
    return tf.strings.lower(texts, encoding="utf-8")


def split_words(texts):
    """`[N]` strings -> ragged `[N, ?]`: runs of letters, digits, runs of others."""
    words = tf_text.regex_split(texts, _WORD, _WORD)
    is_word = tf.strings.regex_full_match(words.flat_values, _WORD)
    return tf.ragged.boolean_mask(words, words.with_flat_values(is_word))


def every_other(mask):
    """`[n]` bool -> the first, third, fifth ... true value of each run of them."""
    index = tf.range(tf.size(mask))
    is_start = mask & ~tf.concat([[False], mask], axis=0)[:-1]
    run = tf.cumsum(tf.cast(is_start, tf.int32))
    starts = tf.concat([[0], tf.boolean_mask(index, is_start)], axis=0)
    return mask & ((index - tf.gather(starts, run)) % 2 == 0)
