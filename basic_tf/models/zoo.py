"""Names of encoders and of models, and their configurations."""

import copy
import dataclasses
import functools

from basic_tf.models import (
    asymmetric_grid,
    clip_configurations,
    description,
    precision,
)
from basic_tf.models.basic_configurations import (
    BASIC_CONFIGURATIONS,
    COATNETS,
    TEXT_TRANSFORMERS,
)
from basic_tf.models.causal_text_transformer import CausalTextTransformer
from basic_tf.models.coatnet import CoAtNet
from basic_tf.models.dual_encoder import DualEncoder
from basic_tf.models.modified_resnet import ModifiedResNet
from basic_tf.models.resnet import ResNet
from basic_tf.models.text_transformer import TextTransformer
from basic_tf.models.timm_configurations import TIMM_COATNETS
from basic_tf.models.vision_transformer import VisionTransformer

KINDS = {
    "coatnet": CoAtNet,
    "text_transformer": TextTransformer,
    "vision_transformer": VisionTransformer,
    "modified_resnet": ModifiedResNet,
    "causal_text_transformer": CausalTextTransformer,
    "resnet": ResNet,
}
CLASSES = 1000  # of ImageNet
VOCABULARY_SIZES = {
    "text_transformer": 32_000,  # BASIC section 9.1
    "causal_text_transformer": clip_configurations.VOCABULARY_SIZE,
}


_RESNETS = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}

# SimCLR's encoders, of its width multipliers, without a classifier.
RESNETS = {
    f"resnet{depth}_x{multiplier}": {
        "kind": "resnet",
        "depths": depths,
        "width": 64 * multiplier,
        "bottleneck": bottleneck,
        "stem": "imagenet",
        "image_size": 224,
    }
    for depth, (depths, bottleneck) in _RESNETS.items()
    for multiplier in (1, 2, 4)
}


CONFIGURATIONS = {
    **BASIC_CONFIGURATIONS,
    **clip_configurations.CLIP_CONFIGURATIONS,
    **asymmetric_grid.CONFIGURATIONS,
}


def _with_output(options, embedding_dim):
    """Options of an encoder by itself, whatever its tokenizer will be."""
    options = options | {"embedding_dim": embedding_dim}
    if options["kind"] in VOCABULARY_SIZES:
        options["vocabulary_size"] = VOCABULARY_SIZES[options["kind"]]
    return options


# Encoders by themselves. A CoAtNet ends in the classifier that its paper counts.
ENCODERS = {
    **{name: _with_output(each, CLASSES) for name, each in COATNETS.items()},
    **{
        f"timm_{name}": _with_output(each, CLASSES)
        for name, each in TIMM_COATNETS.items()
    },
    **{
        name: _with_output(each, each["width"])
        for name, each in TEXT_TRANSFORMERS.items()
    },
    **{
        f"{part}_{name}": _with_output(each[f"{part}_encoder"], each["embedding_dim"])
        for part in ("image", "text")
        for name, each in clip_configurations.CLIP_CONFIGURATIONS.items()
    },
    **{
        f"{part}_asym_{name}": _with_output(each, asymmetric_grid.EMBEDDING_DIM)
        for part, encoders in (
            ("image", asymmetric_grid.IMAGE_ENCODERS),
            ("text", asymmetric_grid.TEXT_ENCODERS),
        )
        for name, each in encoders.items()
    },
    **RESNETS,
}


def configuration(name):
    """The configuration of a named model, free to be changed.

    Raises:
        ValueError: naming the known models.
    """
    if name not in CONFIGURATIONS:
        raise ValueError(f"no model {name!r}; known: {', '.join(CONFIGURATIONS)}")
    return copy.deepcopy(CONFIGURATIONS[name])


def encoder(name, **changes):
    """A named encoder by itself, with fresh weights once it is built.

    Args:
        name: a row of `ENCODERS`.
        changes: options of its class that are to differ, such as `image_size`.

    Raises:
        ValueError: naming the known encoders.
    """
    if name not in ENCODERS:
        raise ValueError(f"no encoder {name!r}; known: {', '.join(ENCODERS)}")
    return _make(ENCODERS[name] | changes)


def _make(options, **more):
    """An encoder of the `kind` that its options say."""
    options = dict(options)
    kind = options.pop("kind")
    if kind not in KINDS:
        raise ValueError(f"no kind of encoder {kind!r}; known: {', '.join(KINDS)}")
    return KINDS[kind](**options, **more)


def build(configuration, vocabulary_size):
    """Builds a `DualEncoder` with fresh weights.

    Args:
        configuration: as `configuration` returns it; the `kind` of each encoder is one
            of `KINDS`, its other fields are options of that class. `precision` is
            "float32" or "mixed_bfloat16". Weights and embeddings are float32.
        vocabulary_size: token ids of the tokenizer, padding included.

    Returns:
        The built `DualEncoder`.

    Raises:
        ValueError: for another `precision`.
    """
    dtype = configuration["precision"]
    if dtype not in precision.POLICIES:
        known = " or ".join(precision.POLICIES)
        raise ValueError(f"precision {dtype!r} is not {known}")
    encoders = [make() for _, make in _parts(configuration, vocabulary_size)]
    model = DualEncoder(*encoders, name="dual_encoder", dtype=dtype)
    model.build()
    return model


def _parts(configuration, vocabulary_size):
    """The shape of an example, and how to make it, of each encoder of a model."""
    if vocabulary_size is None:
        vocabulary_size = VOCABULARY_SIZES[configuration["text_encoder"]["kind"]]
    shared = {
        "embedding_dim": configuration["embedding_dim"],
        "dtype": configuration["precision"],
    }
    own = {"image_encoder": {}, "text_encoder": {"vocabulary_size": vocabulary_size}}
    for part, options in own.items():
        make = functools.partial(
            _make, configuration[part], name=part, **shared, **options
        )
        yield _input_shape(configuration[part]), make


def without_weights(configuration, vocabulary_size=None):
    """The encoders of a configuration, whose variables have shapes but no values.

    Args:
        configuration: see `build`.
        vocabulary_size: token ids; by default 32,000, or CLIP's.

    Returns:
        `[(image encoder, (H, W, 3)), (text encoder, (L,))]`, with the shapes of their
        inputs without the batch.
    """
    return [
        (description.without_weights(make, shape), shape)
        for shape, make in _parts(configuration, vocabulary_size)
    ]


def describe(name, bytes_per_value=4):
    """What a named encoder or model costs, without making its weights.

    Args:
        name: a row of `ENCODERS` or of `CONFIGURATIONS`, whose two encoders are taken
            together: an example is an image and a text.
        bytes_per_value: 4 for activations in float32, 2 in bfloat16.

    Returns:
        A `description.Description`, of images of the row's `image_size` and of texts of
        its `max_length`, from a vocabulary of 32,000, or CLIP's.

    Raises:
        ValueError: naming the known models.
    """
    if name in ENCODERS:
        shape = _input_shape(ENCODERS[name])
        return description.describe(lambda: encoder(name), shape, bytes_per_value)
    of_images, of_texts = (
        description.describe(make, shape, bytes_per_value)
        for shape, make in _parts(configuration(name), vocabulary_size=None)
    )
    both = of_images + of_texts
    # The temperature.
    return dataclasses.replace(both, parameters=both.parameters + 1)


def _input_shape(options):
    """Of the encoder with these options, without the batch."""
    if "image_size" in options:
        return options["image_size"], options["image_size"], 3
    return (options["max_length"],)


def count_parameters(model):
    """Trainable parameters of a built model."""
    return sum(variable.shape.num_elements() for variable in model.trainable_variables)
