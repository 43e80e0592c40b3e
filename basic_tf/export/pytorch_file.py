"""Tensors of a file of `torch.save`, without PyTorch and without running its pickle.

Such a file is a zip archive: `data.pkl` holds the object with references to storages,
`data/KEY` the bytes of each storage. A pickle may call anything it can name, so that
nothing can be named here but what makes an ordered dictionary or a tensor.
"""

import collections
import dataclasses
import math
import pickle
import zipfile
from collections.abc import Callable

import ml_dtypes
import numpy as np

DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


class Sealed:
    """What a pickle may hold and pass on, but not write into."""

    def __setstate__(self, state):
        raise ValueError("its pickle changes a tensor that it has made")


@dataclasses.dataclass(frozen=True)
class Storage(Sealed):
    """Bytes of the archive that tensors are views of."""

    archive: zipfile.ZipFile
    entry: zipfile.ZipInfo
    dtype: np.dtype
    size: int

    def read(self):
        return np.frombuffer(self.archive.read(self.entry), self.dtype)


@dataclasses.dataclass(frozen=True)
class Tensor(Sealed):
    """A tensor of the file, read when asked for.

    Attributes:
        storage: `Storage`.
        offset: its first element there.
        shape, strides: in elements.
    """

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple

    @property
    def dtype(self):
        return self.storage.dtype

    def read(self):
        """The values, an array of `dtype`.

        Raises:
            ValueError: if the bytes are not those that were written.
        """
        try:
            values = self.storage.read()[self.offset :]
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise ValueError(f"{self.storage.entry.filename}: {error}") from None
        strides = [stride * self.dtype.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(
            values, self.shape, strides, writeable=False
        ).copy()


@dataclasses.dataclass(frozen=True)
class StorageType(Sealed):
    """What the pickle calls a class of storages."""

    dtype: np.dtype


@dataclasses.dataclass(frozen=True)
class Call(Sealed):
    """What the pickle calls a function or a class that it may call."""

    function: Callable

    def __call__(self, *arguments):
        return self.function(*arguments)


def _tensor(storage, offset, shape, strides, *_):
    """`torch._utils._rebuild_tensor_v2`; never a view of other memory."""
    shape, strides = tuple(shape), tuple(strides)
    sizes = (offset, *shape, *strides)
    if (
        not isinstance(storage, Storage)
        or len(shape) != len(strides)
        or not all(type(size) is int and size >= 0 for size in sizes)
    ):
        raise ValueError("a tensor is not one")
    last = sum((side - 1) * stride for side, stride in zip(shape, strides, strict=True))
    if math.prod(shape) and offset + last >= storage.size:
        raise ValueError("a tensor reaches over the end of its storage")
    return Tensor(storage, offset, shape, strides)


ALLOWED = {
    "collections.OrderedDict": Call(collections.OrderedDict),
    "torch._utils._rebuild_tensor_v2": Call(_tensor),
    "torch._utils._rebuild_parameter": Call(lambda tensor, *_: tensor),
} | {f"torch.{name}": StorageType(np.dtype(dtype)) for name, dtype in DTYPES.items()}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, archive, folder):
        super().__init__(file)
        self._archive, self._folder = archive, folder

    def find_class(self, module, name):
        if f"{module}.{name}" not in ALLOWED:
            raise ValueError(
                f"its pickle asks for {module}.{name}, which is not loaded; save the "
                "state dict alone, best as .safetensors"
            )
        return ALLOWED[f"{module}.{name}"]

    def persistent_load(self, reference):
        kind, storage_type, key, _, size = reference
        if kind != "storage" or not isinstance(storage_type, StorageType):
            raise ValueError("it holds something else than tensors")
        dtype = storage_type.dtype
        entry = self._archive.getinfo(f"{self._folder}data/{key}")
        stored = entry.compress_type == zipfile.ZIP_STORED
        if not stored or entry.file_size != size * dtype.itemsize:
            raise ValueError(f"{entry.filename} has not the size that it should have")
        return Storage(self._archive, entry, dtype, size)


def read(path):
    """The object of a file of `torch.save`, with a `Tensor` for each tensor.

    Raises:
        ValueError: if it is cut off, is TorchScript, or holds more than tensors,
            numbers, strings and their lists and dictionaries.
    """
    try:
        archive = zipfile.ZipFile(path)
        names = archive.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError("it has no data.pkl, or several")
        folder = pickles[0].removesuffix("data.pkl")
        if f"{folder}constants.pkl" in names:
            raise ValueError(
                "it is a TorchScript archive, which holds code; save the state dict of "
                "the loaded model, best as .safetensors"
            )
        order = f"{folder}byteorder"
        if order in names and archive.read(order) != b"little":
            raise ValueError("its numbers are not little-endian")
        with archive.open(pickles[0]) as file:
            return _Unpickler(file, archive, folder).load()
    except (zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    except Exception as error:  # a broken pickle raises anything at all
        raise ValueError(
            f"{path} cannot be read: its pickle is broken ({error!r})"
        ) from None
