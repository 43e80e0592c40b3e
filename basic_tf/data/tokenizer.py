"""SentencePiece tokenizer (BASIC section 7.1): training, and ids inside any graph."""

import io

import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

PADDING_ID, END_ID, UNKNOWN_ID = 0, 1, 2
KINDS = ("unigram", "bpe")
NORMALIZATIONS = ("nmt_nfkc_cf", "nmt_nfkc", "nfkc_cf", "nfkc", "identity")


def train(
    captions,
    vocabulary_size,
    kind="unigram",
    normalization="nmt_nfkc_cf",
    byte_fallback=False,
    allow_smaller=True,
):
    """Trains a SentencePiece model.

    Args:
        captions: iterable of strings.
        vocabulary_size: number of pieces.
        kind: `"unigram"` or `"bpe"`.
        normalization: what SentencePiece does to text first, the name of a rule; the
            default is NFKC and case folding.
        byte_fallback: characters outside the vocabulary become their bytes, which take
            256 pieces; else they become the unknown piece.
        allow_smaller: where the text cannot fill the vocabulary, it is as large as the
            text makes it; else that is an error.

    Returns:
        The serialized model, bytes.

    Raises:
        ValueError: if no caption holds any text, `vocabulary_size` is too small for the
            characters of the text, or too large and `allow_smaller` is false, or there
            is no such kind or rule.
    """
    captions = [caption for caption in captions if caption.strip()]
    if not captions:
        raise ValueError("no caption holds any text: nothing to train a tokenizer on")
    if kind not in KINDS or normalization not in NORMALIZATIONS:
        raise ValueError(
            f"kind {kind!r} with normalization {normalization!r}: a tokenizer is one "
            f"of {', '.join(KINDS)} with one of {', '.join(NORMALIZATIONS)}"
        )
    # An option is part of the model, also where it is the default.
    options = {"byte_fallback": True} if byte_fallback else {}
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(captions),
            model_writer=model,
            vocab_size=vocabulary_size,
            hard_vocab_limit=not allow_smaller,
            model_type=kind,
            normalization_rule_name=normalization,
            pad_id=PADDING_ID,
            eos_id=END_ID,
            unk_id=UNKNOWN_ID,
            bos_id=-1,
            num_threads=1,  # the result depends on the number of threads
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ValueError(f"vocabulary_size {vocabulary_size}: {reason}") from None
    return model.getvalue()


class Tokenizer:
    """Texts to rows of token ids, the same in Python, `tf.data` and a SavedModel.

    Args:
        model: a serialized SentencePiece model, as `train` returns it.
        max_length: L, length of a row, the end-of-text id included.
    """

    def __init__(self, model, max_length):
        self.model = model
        self.max_length = max_length

    @property
    def pieces(self):
        """A new `tf_text.SentencepieceTokenizer` of the model.

        Its resource dies with the kernel that made it, and every `tf.random.set_seed`
        drops the kernels of eager mode: one that is kept stops working. Made anew it is
        part of the graph, and in eager mode the kernel is found in TensorFlow's cache.
        """
        return tf_text.SentencepieceTokenizer(model=self.model, out_type=tf.int32)

    @property
    def vocabulary_size(self):
        return int(self.pieces.vocab_size())

    def __call__(self, texts):
        """`[N]` strings -> `[N, L]` int32 padded with 0.

        Every row holds one end-of-text id; a longer text is cut before it.
        """
        ids = self.pieces.tokenize(texts)[:, : self.max_length - 1]
        ends = tf.fill([ids.nrows(), 1], END_ID)
        ids = tf.concat([ids, ends], axis=1)
        return ids.to_tensor(PADDING_ID, shape=[None, self.max_length])

    def lengths(self, texts):
        """`[N]` strings -> `[N]` int: ids of each text, the end included, uncut."""
        return self.pieces.tokenize(texts).row_lengths() + 1
