"""The tensors of a checkpoint file: safetensors, or a state dict of PyTorch."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping

import ml_dtypes  # noqa: F401 (NumPy learns of bfloat16, which safetensors asks it for)
import numpy as np
import safetensors

from basic_tf.export import pytorch_file

FLOATS = {
    *("float64", "float32", "float16", "bfloat16"),
    *("F64", "F32", "F16", "BF16"),
}
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # its first pickle, a number


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file.

    Attributes:
        shape: tuple.
        dtype: its name in the file.
        load: gives the array.
    """

    shape: tuple
    dtype: str
    load: Callable

    @property
    def is_float(self):
        return self.dtype in FLOATS

    def read(self):
        """The values, float32."""
        return np.asarray(self.load()).astype("float32")


def read(path):
    """The tensors of a file, by name; their values are read when asked for.

    The format is told by the content. A checkpoint of OpenCLIP's training is read as
    its `state_dict`; the prefix `module.` of distributed training is taken off.

    Args:
        path: a safetensors file, or one of `torch.save` with a state dict.

    Returns:
        `{name: Tensor}`.

    Raises:
        ValueError: if the file is another, is cut off, or holds more than tensors.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is no file")
    with path.open("rb") as file:
        start = file.read(len(LEGACY))
    if start == LEGACY:
        raise ValueError(
            f"{path} is in PyTorch's format of before 1.6; save it again with a newer "
            "PyTorch, best as .safetensors"
        )
    tensors = _pytorch(path) if start[:2] == b"PK" else _safetensors(path)
    if all(name.startswith("module.") for name in tensors):
        tensors = {name.removeprefix("module."): tensors[name] for name in tensors}
    return tensors


def _safetensors(path):
    try:
        file = safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        reason = str(error)
        raise ValueError(
            f"{path} is no whole safetensors or PyTorch file ({reason})"
        ) from None
    tensors = {}
    for name in file.keys():  # noqa: SIM118 (it is no dictionary)
        view = file.get_slice(name)
        tensors[name] = Tensor(
            tuple(view.get_shape()),
            view.get_dtype(),
            lambda name=name: file.get_tensor(name),
        )
    return tensors


def _pytorch(path):
    content = pytorch_file.read(path)
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} holds a {type(content).__name__}, not a state dict")
    others = [
        str(name)
        for name, value in content.items()
        if not isinstance(name, str) or not isinstance(value, pytorch_file.Tensor)
    ]
    if others:
        raise ValueError(f"{path} holds no tensor under {', '.join(others[:8])}")
    return {
        name: Tensor(tensor.shape, tensor.dtype.name, tensor.read)
        for name, tensor in content.items()
    }
