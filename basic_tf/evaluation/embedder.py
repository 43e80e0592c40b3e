"""A run that embeds images and texts: traced once, however many tasks there are."""

import numpy as np
import tensorflow as tf

from basic_tf.evaluation import features

MAX_TEXTS = 512  # that are encoded at a time


class Embedder:
    """The two encoders of a run.

    The weights may change in between: what is traced reads those of the moment.

    Args:
        run: `loaded_run.LoadedRun`; its model, tokenizer, image size and configuration
            are used.
        batch_size: images at a time, at most; no embedding depends on it.
        directory: folder that keeps the embeddings of images; None to keep none.
    """

    def __init__(self, run, batch_size=256, directory=None):
        self.run, self.batch_size, self.directory = run, batch_size, directory
        self._encode_image = features.image_encoder(run.model)
        self._encode_text = tf.function(
            run.model.encode_text,
            reduce_retracing=True,
            jit_compile=False,
            autograph=False,
        )

    def images(self, examples, source, title):
        """Embeds images in their order, each once, or reads them from the folder.

        Args:
            examples: `sources.Examples`.
            source: name of what they are from, as of `sources.load`.
            title: what to call them where progress is shown.

        Returns:
            `[N, D]` float32 unit vectors.
        """
        run, encode = self.run, self._encode_image
        if self.directory is None:
            return features.embed(
                encode, examples, run.image_size, self.batch_size, title
            )
        return features.cached_embeddings(
            self.directory, run, source, examples, self.batch_size, title, encode
        )

    def texts(self, texts):
        """Embeds texts, string `[C]`, some at a time: `[C, D]` unit vectors."""
        starts = range(0, len(texts), MAX_TEXTS)
        parts = [
            self._encode_text(self.run.tokenizer(texts[start : start + MAX_TEXTS]))
            for start in starts
        ]
        return tf.concat(parts, axis=0)

    def pairs(self, examples, source, title):
        """Embeds images and all their captions.

        Args:
            As those of `images`.

        Returns:
            `[N, D]`, `[M, D]`, and which image each caption is of, `[M]` int.
        """
        images = self.images(examples, source, title)
        texts = self.texts(np.array(examples.captions, object)).numpy()
        return images, texts, np.repeat(np.arange(len(images)), examples.caption_counts)
