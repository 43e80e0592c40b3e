"""A trained run, read from its folder."""

import dataclasses
import json
import pathlib

import keras
from absl import logging
from ml_collections import ConfigDict

from basic_tf import files
from basic_tf.data import clip_tokenizer, preprocessing
from basic_tf.data import tokenizer as tokenizers
from basic_tf.models import image_size, zoo
from basic_tf.models.coatnet import CoAtNet
from basic_tf.training import checkpoints


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """A trained model with what belongs to it.

    Attributes:
        model: `DualEncoder`.
        tokenizer: `Tokenizer`, or the `ClipTokenizer` of a model of CLIP.
        config: `ConfigDict` of the run.
        image_size: side in pixels of the images that the model takes.
        label_names: names of the classes of the training examples, if they had any.
    """

    model: keras.Model
    tokenizer: tokenizers.Tokenizer | clip_tokenizer.ClipTokenizer
    config: ConfigDict
    image_size: int
    label_names: list

    def load_image(self, image_bytes):
        """An image file, string `[]`, as the model takes it, `[S, S, 3]`."""
        return preprocessing.load_image(image_bytes, self.image_size)


def load(workdir):
    """Loads the newest complete checkpoint of a run.

    Raises:
        FileNotFoundError: if the folder holds no run, or no checkpoint yet.
        ValueError: if all its checkpoints are damaged.
    """
    workdir = pathlib.Path(workdir)
    if not (workdir / "config.json").is_file():
        raise FileNotFoundError(f"{workdir} holds no run: it has no config.json")
    config = ConfigDict(json.loads((workdir / "config.json").read_text()))
    prefix = newest_checkpoint(workdir)
    tokenizer = make_tokenizer(config, (workdir / "tokenizer.model").read_bytes())
    model = zoo.build(config.model.to_dict(), tokenizer.vocabulary_size)
    checkpoints.restore(prefix, model_variables(model))
    return LoadedRun(
        model=model,
        tokenizer=tokenizer,
        config=config,
        image_size=config.model.image_encoder.image_size,
        label_names=json.loads((workdir / "labels.json").read_text()),
    )


def start_from(workdir, model, configuration, vocabulary_size):
    """Gives a new model the weights of a run; returns the checkpoint's path.

    A CoAtNet may take images of another size than the run's: its tables of relative
    positions are resized.

    Args:
        workdir: folder of the run.
        model: built from the configuration that follows.
        configuration: as `zoo.build` takes it.
        vocabulary_size: likewise.

    Raises:
        FileNotFoundError: if the run has no checkpoint.
        ValueError: if the weights are those of another model, or all are damaged.
    """
    prefix = newest_checkpoint(workdir)
    theirs = files.read_json(pathlib.Path(workdir) / "config.json")["model"]
    size = theirs["image_encoder"]["image_size"]
    if size == model.image_encoder.image_size or not isinstance(
        model.image_encoder, CoAtNet
    ):
        checkpoints.restore(prefix, model_variables(model))
        return prefix
    encoder = configuration["image_encoder"] | {"image_size": size}
    first = zoo.build(configuration | {"image_encoder": encoder}, vocabulary_size)
    checkpoints.restore(prefix, model_variables(first))
    image_size.copy_weights(first, model)
    return prefix


def make_tokenizer(config, content):
    """The tokenizer of a run, from its configuration and its `tokenizer.model`."""
    is_clip = config.tokenizer.get("kind") == "clip"
    kind = clip_tokenizer.ClipTokenizer if is_clip else tokenizers.Tokenizer
    return kind(content, config.model.text_encoder.max_length)


def newest_checkpoint(workdir):
    """Path of the newest complete checkpoint of a run; warns if more are to come.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if all are damaged.
    """
    workdir = pathlib.Path(workdir)
    prefix, _ = checkpoints.read(workdir / "checkpoints", ())
    if prefix is None:
        raise FileNotFoundError(f"{workdir}/checkpoints holds no complete checkpoint")
    if not (workdir / "train.json").is_file():
        logging.warning("%s is not trained to its end: this is %s", workdir, prefix)
    return prefix


def model_variables(model):
    """What a checkpoint holds of a model, by name."""
    return checkpoints.by_path("model", model.variables)
