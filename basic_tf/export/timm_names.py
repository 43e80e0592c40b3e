"""timm's names of a CoAtNet's weights, and ours; rows as in `name_rows`."""

import math

import numpy as np

from basic_tf.export import name_rows
from basic_tf.export.name_rows import CONVOLUTION, Transformation
from basic_tf.models.timm_configurations import DEFINITION

DEPTHWISE = Transformation(  # [channels, 1, height, width] there
    lambda array: (array.transpose(2, 3, 0, 1),),
    lambda array: array.transpose(2, 3, 0, 1),
)
POINTWISE = Transformation(  # a convolution of 1 x 1 there, dense here
    lambda array: (array[:, :, 0, 0].T,), lambda array: array.T[:, :, None, None]
)
TABLE = Transformation(  # [(2H - 1) (2W - 1), heads] there; our images are square
    lambda array: (array.T.reshape(-1, *2 * (math.isqrt(len(array)),)),),
    lambda array: array.reshape(len(array), -1).T,
)
HEADS = {  # where the norm stands, by what stands before the projection
    ("norm", "mean"): "norm",
    ("mean", "norm", "tanh"): "head.norm",
}


def alone(encoder):
    """The rows of timm's own file, whose classifier is the projection.

    Args:
        encoder: a `CoAtNet` of timm's definition.

    Raises:
        ValueError: naming an option that timm's networks have otherwise.
    """
    return _rows(encoder, trunk="", projection="head.fc")


def in_open_clip(encoder):
    """The same where OpenCLIP has put the network into a CLIP, with its projection."""
    return _rows(encoder, trunk="visual.trunk.", projection="visual.head.proj")


def _rows(encoder, trunk, projection):
    _check(encoder)
    stem, ours = f"{trunk}stem", "image_encoder/stage0"
    rows = [
        (f"{stem}.conv1.weight", f"{ours}/conv0/kernel", CONVOLUTION),
        *name_rows.batch_norm(f"{stem}.norm1", f"{ours}/norm1"),
        (f"{stem}.conv2.weight", f"{ours}/conv1/kernel", CONVOLUTION),
    ]
    for stage, kind in enumerate(encoder.blocks):
        for block in range(encoder.depths[stage + 1]):
            theirs = f"{trunk}stages.{stage}.blocks.{block}"
            ours = f"image_encoder/stage{stage + 1}_block{block}"
            rows += name_rows.dense(
                f"{theirs}.shortcut.expand", f"{ours}/shortcut", CONVOLUTION
            )
            if kind == "mbconv":
                rows += _mbconv(theirs, f"{ours}/block")
            else:
                norm = "norm1" if block else "norm1.norm"  # the first pools after it
                rows += name_rows.norm(f"{theirs}.{norm}", f"{ours}/norm")
                rows += _transformer(theirs, ours, encoder.head_dim)
    return rows + [
        *name_rows.norm(trunk + HEADS[encoder.head_layers], "image_encoder/head/norm"),
        *name_rows.dense(f"{trunk}head.pre_logits.fc", "image_encoder/head/tanh"),
        *name_rows.dense(projection, "image_encoder/head/projection"),
    ]


def _check(encoder):
    """Names are of no use for a network that computes something else."""
    expected = DEFINITION | {"depths": (2, *encoder.depths[1:])}
    config = encoder.get_config()
    for name, value in expected.items():
        if config[name] != value:
            raise ValueError(
                f"timm has no CoAtNet with {name} {config[name]!r}; its have {value!r}"
            )
    if encoder.head_layers not in HEADS:
        raise ValueError(
            f"timm has no CoAtNet with head {encoder.head_layers}; its have "
            f"{' or '.join(map(str, HEADS))}"
        )


def _mbconv(theirs, ours):
    return [
        *name_rows.batch_norm(f"{theirs}.pre_norm", f"{ours}/norm"),
        (f"{theirs}.conv1_1x1.weight", f"{ours}/expand/kernel", CONVOLUTION),
        *name_rows.batch_norm(f"{theirs}.norm1", f"{ours}/expand_norm"),
        (f"{theirs}.conv2_kxk.weight", f"{ours}/depthwise/kernel", DEPTHWISE),
        *name_rows.batch_norm(f"{theirs}.norm2", f"{ours}/depthwise_norm"),
        *name_rows.dense(f"{theirs}.se.fc1", f"{ours}/se/reduce", CONVOLUTION),
        *name_rows.dense(f"{theirs}.se.fc2", f"{ours}/se/expand", CONVOLUTION),
        *name_rows.dense(f"{theirs}.conv3_1x1", f"{ours}/project", CONVOLUTION),
    ]


def _transformer(theirs, ours, head_dim):
    attention, feed_forward = f"{ours}/attention/attention", f"{ours}/feed_forward"
    projections = f"{attention}/{{query,key,value}}"
    table = f"{theirs}.attn.rel_pos.relative_position_bias_table"
    kernels, biases = _interleaved(head_dim)
    return [
        (f"{theirs}.attn.qkv.weight", f"{projections}/kernel", kernels),
        (f"{theirs}.attn.qkv.bias", f"{projections}/bias", biases),
        (table, f"{ours}/attention/relative_bias", TABLE),
        *name_rows.dense(f"{theirs}.attn.proj", f"{attention}/output", POINTWISE),
        *name_rows.norm(f"{theirs}.norm2", f"{feed_forward}/norm"),
        *name_rows.dense(f"{theirs}.mlp.fc1", f"{feed_forward}/expand", POINTWISE),
        *name_rows.dense(f"{theirs}.mlp.fc2", f"{feed_forward}/project", POINTWISE),
    ]


def _interleaved(head_dim):
    """Query, key and value of one head stand together, then those of the next.

    Returns:
        The transformations of the weights and of the biases.
    """

    def split(array):
        """`[3 * F, ...]` -> three of `[F, ...]`."""
        heads = array.reshape(-1, 3, head_dim, *array.shape[1:])
        return tuple(heads[:, part].reshape(-1, *array.shape[1:]) for part in range(3))

    def join(*arrays):
        heads = [array.reshape(-1, head_dim, *array.shape[1:]) for array in arrays]
        return np.stack(heads, axis=1).reshape(-1, *arrays[0].shape[1:])

    kernels = Transformation(
        lambda array: tuple(part.T for part in split(array[:, :, 0, 0])),
        lambda *arrays: join(*(array.T for array in arrays))[:, :, None, None],
    )
    return kernels, Transformation(split, join)
