"""Embeddings of whole sets of images, computed once and kept in a folder."""

import hashlib
import json
import pathlib

import numpy as np
import tensorflow as tf
from absl import logging

from basic_tf import files
from basic_tf.data import batches, image_places, preprocessing
from basic_tf.evaluation import progress

_SEAL_BYTES = hashlib.sha256().digest_size


def embed_images(model, examples, image_size, batch_size=256, title="images"):
    """Embeds all images in their order, each once.

    Args:
        model: `DualEncoder`; its statistics stay as they are.
        examples: `sources.Examples`.
        image_size: side in pixels of the images that the model takes.
        batch_size: images at a time, at most.
        title: what to call them where progress is shown.

    Returns:
        `[N, D]` float32 unit vectors.
    """
    return embed(image_encoder(model), examples, image_size, batch_size, title)


def image_encoder(model):
    """A traced function from images, `[b, S, S, 3]`, to their embeddings."""
    return tf.function(model.encode_image, jit_compile=False, autograph=False)


def embed(encode, examples, image_size, batch_size, title):
    """`embed_images` by a function of `image_encoder`, which traces a size once."""
    dataset = batches.evaluation_batches(examples, image_size, batch_size)
    shown, parts, done = progress.Progress(title, len(examples)), [], 0
    for images, mask in dataset:
        parts.append(encode(images).numpy()[mask.numpy()])
        done += len(parts[-1])
        shown.update(done)
    shown.close()
    return np.concatenate(parts)


def cached_embeddings(
    directory, run, split, examples, batch_size=256, title="images", encode=None
):
    """`embed_images`, read from a file where the same were embedded before.

    A file that is damaged or holds something else is named in a warning and written
    anew. Processes may share the folder: each finds a file whole or not at all.

    Args:
        directory: folder of the files, made when missing.
        run: `loaded_run.LoadedRun`.
        split: name of the source, such as `"tfds:glyphs/concepts:serif"`.
        examples: `sources.Examples` of it.
        batch_size: images at a time.
        title: see `embed_images`.
        encode: from `image_encoder` of the run's model; made when None.

    Returns:
        `[N, D]` float32 unit vectors.
    """
    key = cache_key(run, split, examples)
    path = pathlib.Path(directory) / f"{key}.features"
    embeddings = _read(path, key, len(examples))
    if embeddings is None:
        encode = encode or image_encoder(run.model)
        embeddings = embed(encode, examples, run.image_size, batch_size, title)
        content = embeddings.tobytes()
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, _seal(key, content) + content)
    return embeddings


def cache_key(run, split, examples):
    """What embeddings depend on, as a hash of 64 characters.

    That is the image encoder's configuration and weights, the size of the images, what
    preprocessing makes of a picture, and the examples: their source, number, order and
    keys. Images in memory count byte by byte; one that stays in its file is known by
    its key: where a file changes under its name, the folder must be removed.

    Arguments as those of `cached_embeddings`.
    """
    return _digest(
        json.dumps(run.config.model.to_dict(), sort_keys=True).encode(),
        *(_array_digest(weight) for weight in run.model.image_encoder.weights),
        _array_digest(preprocessing.load_image(_picture(), run.image_size)),
        json.dumps([split, len(examples), list(examples.keys)]).encode(),
        _image_digest(examples),
    ).hex()


def _image_digest(examples):
    if examples.pixels is not None:
        return _array_digest(examples.pixels)
    if isinstance(examples.images, image_places.InMemory):
        return _digest(*examples.images)
    return b""


def _picture():
    """An image file that is not square, of every brightness."""
    levels = np.arange(15 * 17 * 3, dtype=np.uint32) * 7919 % 256
    return tf.io.encode_png(levels.astype(np.uint8).reshape(15, 17, 3))


def _array_digest(array):
    array = np.ascontiguousarray(array)
    return _digest(f"{array.dtype} {array.shape}".encode(), array.tobytes())


def _digest(*parts):
    """SHA-256 of byte strings, each with its length, so that none runs into another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _seal(key, content):
    """What a file begins with: it holds for its content and its key alone."""
    digest = hashlib.sha256(key.encode())
    digest.update(content)
    return digest.digest()


def _read(path, key, count):
    """The embeddings of a file; None if there is none, or not this one."""
    if not path.exists():
        return None
    content = np.fromfile(path, np.uint8)
    seal, content = content[:_SEAL_BYTES], content[_SEAL_BYTES:]
    if seal.tobytes() != _seal(key, content):
        logging.warning(
            "%s is damaged or holds something else; it is computed again", path
        )
        return None
    return content.view(np.float32).reshape(count, -1)
