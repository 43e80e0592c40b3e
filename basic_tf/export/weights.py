"""OpenCLIP's and OpenAI's names of CLIP's weights, and ours: one table, read both ways.

Its rows are as in `name_rows`. `{n}` stands for the same number on both sides, and
`{a,b}` for several of our variables that the file keeps in one tensor.
"""

import re

import numpy as np

from basic_tf.export import checkpoint_files, name_rows, timm_names
from basic_tf.export.name_rows import CONVOLUTION, DENSE_THIRDS, SAME, THIRDS
from basic_tf.models.causal_text_transformer import CausalTextTransformer
from basic_tf.models.coatnet import CoAtNet
from basic_tf.models.dual_encoder import DualEncoder
from basic_tf.models.modified_resnet import ModifiedResNet
from basic_tf.models.vision_transformer import VisionTransformer


def _transformer(theirs, ours):
    block, attention = f"{theirs}.resblocks.{{n}}", f"{ours}/block{{n}}/attention"
    feed_forward = f"{ours}/block{{n}}/feed_forward"
    projections = f"{attention}/{{query,key,value}}"
    return [
        *name_rows.norm(f"{block}.ln_1", f"{ours}/block{{n}}/norm"),
        (f"{block}.attn.in_proj_weight", f"{projections}/kernel", DENSE_THIRDS),
        (f"{block}.attn.in_proj_bias", f"{projections}/bias", THIRDS),
        *name_rows.dense(f"{block}.attn.out_proj", f"{attention}/output"),
        *name_rows.norm(f"{block}.ln_2", f"{feed_forward}/norm"),
        *name_rows.dense(f"{block}.mlp.c_fc", f"{feed_forward}/expand"),
        *name_rows.dense(f"{block}.mlp.c_proj", f"{feed_forward}/project"),
    ]


def _convolutions(theirs, ours):
    for index in (1, 2, 3):
        yield f"{theirs}conv{index}.weight", f"{ours}/conv{index}/kernel", CONVOLUTION
        yield from name_rows.batch_norm(f"{theirs}bn{index}", f"{ours}/norm{index}")


TEXT_TRANSFORMER = [
    ("token_embedding.weight", "text_encoder/token_embedding/embeddings", SAME),
    ("positional_embedding", "text_encoder/position_embedding/embeddings", SAME),
    *_transformer("transformer", "text_encoder"),
    *name_rows.norm("ln_final", "text_encoder/norm"),
    ("text_projection", "text_encoder/projection/kernel", SAME),
]
VISION_TRANSFORMER = [
    ("visual.class_embedding", "image_encoder/class_embedding", SAME),
    ("visual.positional_embedding", "image_encoder/position_embedding", SAME),
    ("visual.conv1.weight", "image_encoder/patch_embedding/kernel", CONVOLUTION),
    *name_rows.norm("visual.ln_pre", "image_encoder/pre_norm"),
    *_transformer("visual.transformer", "image_encoder"),
    *name_rows.norm("visual.ln_post", "image_encoder/norm"),
    ("visual.proj", "image_encoder/projection/kernel", SAME),
]
_BLOCK, _OUR_BLOCK = "visual.layer{n}.{m}.", "image_encoder/stage{n}_block{m}"
_POOLING, _OUR_POOLING = "visual.attnpool", "image_encoder/pooling"
MODIFIED_RESNET = [
    *_convolutions("visual.", "image_encoder/stem"),
    *_convolutions(_BLOCK, f"{_OUR_BLOCK}/residual"),
    (f"{_BLOCK}downsample.0.weight", f"{_OUR_BLOCK}/shortcut/conv/kernel", CONVOLUTION),
    *name_rows.batch_norm(f"{_BLOCK}downsample.1", f"{_OUR_BLOCK}/shortcut/norm"),
    (f"{_POOLING}.positional_embedding", f"{_OUR_POOLING}/position_embedding", SAME),
    *name_rows.dense(f"{_POOLING}.q_proj", f"{_OUR_POOLING}/attention/query"),
    *name_rows.dense(f"{_POOLING}.k_proj", f"{_OUR_POOLING}/attention/key"),
    *name_rows.dense(f"{_POOLING}.v_proj", f"{_OUR_POOLING}/attention/value"),
    *name_rows.dense(f"{_POOLING}.c_proj", f"{_OUR_POOLING}/attention/output"),
]
TABLES = {  # or the function that makes them of an encoder
    DualEncoder: [("logit_scale", "log_scale", SAME)],
    CausalTextTransformer: TEXT_TRANSFORMER,
    VisionTransformer: VISION_TRANSFORMER,
    ModifiedResNet: MODIFIED_RESNET,
    CoAtNet: timm_names.in_open_clip,
}
CUSTOM_TEXT = "text."  # before the names of the text encoder in a CustomTextCLIP

# What a file may hold beside the weights: counters, masks, and sizes as tensors.
BUFFERS = re.compile(
    r"(.+\.)?(num_batches_tracked|attn_mask)"
    r"|input_resolution|context_length|vocab_size"
)


def load_weights(model, path):
    """Assigns the weights of a file to a model; nothing, unless all of them fit.

    Args:
        model: a built `DualEncoder` of a `VisionTransformer`, `ModifiedResNet` or
            `CoAtNet` of timm's definition and a `CausalTextTransformer`; or such a
            `CoAtNet` by itself, for a file of timm's.
        path: a file as `checkpoint_files.read` takes it.

    Raises:
        ValueError: if the model is another, if the file cannot be read, or naming
            every tensor that is missing, left over or wrongly shaped. The model is then
            as it was.
    """
    tensors = {
        name: tensor
        for name, tensor in checkpoint_files.read(path).items()
        if not BUFFERS.fullmatch(name)
    }
    custom_text = any(name.startswith(CUSTOM_TEXT) for name in tensors)
    entries = _entries(model, custom_text)
    wrong = [f"{name} is missing" for name in entries if name not in tensors]
    wrong += [f"{name} is left over" for name in tensors if name not in entries]
    for name in entries.keys() & tensors.keys():
        variables, transformation = entries[name]
        shape = _packed_shape(variables, transformation)
        if tensors[name].shape != shape:
            wrong.append(f"{name} is {tensors[name].shape}, not {shape}")
        if not tensors[name].is_float:
            wrong.append(f"{name} is {tensors[name].dtype}, not a float")
    if not entries.keys() & tensors.keys():
        raise ValueError(
            f"{path} has no tensor of this model; its names must be OpenCLIP's, "
            f"OpenAI's or timm's, such as {next(iter(entries))}, not "
            f"{next(iter(tensors), 'none at all')}"
        )
    if wrong:
        raise ValueError(f"{path} does not fit the model: {'; '.join(sorted(wrong))}")
    values = {name: tensor.read() for name, tensor in tensors.items()}
    for name, (variables, transformation) in entries.items():
        for variable, value in zip(
            variables, transformation.unpack(values[name]), strict=True
        ):
            variable.assign(value)


def to_state_dict(model, custom_text=False):
    """The weights of a model under OpenCLIP's names; of a `CoAtNet` alone, timm's.

    Args:
        model: as of `load_weights`.
        custom_text: whether the text encoder's names are those of a CustomTextCLIP,
            which OpenCLIP makes of a description with `custom_text`.

    Returns:
        `{name: float32 array}`. OpenCLIP loads it as it is, counters of batch norm
        left out.
    """
    return {
        name: np.array(
            transformation.pack(*(variable.numpy() for variable in variables)),
            order="C",
        )
        for name, (variables, transformation) in _entries(model, custom_text).items()
    }


def _packed_shape(variables, transformation):
    # Views of one zero: no memory but where several variables are joined.
    zeros = (
        np.broadcast_to(np.float32(0), tuple(variable.shape)) for variable in variables
    )
    return transformation.pack(*zeros).shape


def _entries(model, custom_text):
    """`{name in a file: (our variables, transformation)}` of a model."""
    entries, named = {}, set()
    table = _table(model, custom_text)
    variables = _variables(model)
    for theirs, ours, transformation in table:
        first, *others = _alternatives(ours)
        pattern = re.sub(r"\\{(\w)\\}", r"(?P<\1>\\d+)", re.escape(first))
        for path in variables:
            match = re.fullmatch(pattern, path)
            if match is None:
                continue
            numbers = match.groupdict()
            paths = [path, *(other.format(**numbers) for other in others)]
            parts = [variables[path] for path in paths]
            entries[theirs.format(**numbers)] = parts, transformation
            named.update(paths)
    if nameless := variables.keys() - named:
        raise ValueError(f"no name is known of {', '.join(sorted(nameless))}")
    return entries


def _table(model, custom_text):
    """The rows for a model; other encoders may have equal names and another meaning."""
    if type(model) is CoAtNet:
        return timm_names.alone(model)
    if not isinstance(model, DualEncoder):
        raise ValueError(
            f"a {type(model).__name__} by itself has no file: give a DualEncoder, or a "
            "CoAtNet of timm's definition"
        )
    rows = []
    for part in (model, model.image_encoder, model.text_encoder):
        if type(part) not in TABLES:
            raise ValueError(
                f"CLIP has no weights for {type(part).__name__}; it has for "
                f"{', '.join(known.__name__ for known in TABLES)}"
            )
        table = TABLES[type(part)]
        if callable(table):
            table = table(part)
        prefix = CUSTOM_TEXT if custom_text and part is model.text_encoder else ""
        rows += [(prefix + theirs, *others) for theirs, *others in table]
    return rows


def _alternatives(path):
    """`a/{b,c}` -> `a/b`, `a/c`."""
    names = re.search(r"{(\w+(?:,\w+)+)}", path)
    if names is None:
        return [path]
    return [path.replace(names[0], name) for name in names[1].split(",")]


def _variables(model):
    """The variables by path, whatever the model and its encoders are called."""
    if type(model) is CoAtNet:
        return _variables_of(model, "image_encoder")
    return {
        "log_scale": model.log_scale,
        **_variables_of(model.image_encoder, "image_encoder"),
        **_variables_of(model.text_encoder, "text_encoder"),
    }


def _variables_of(encoder, name):
    variables = {}
    for variable in encoder.variables:
        _, path = f"/{variable.path}".split(f"/{encoder.name}/", 1)
        variables[f"{name}/{path}"] = variable
    return variables
