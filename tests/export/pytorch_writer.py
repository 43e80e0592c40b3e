"""Files as `torch.save` writes them, made of pickle opcodes: PyTorch is not needed.

The functions give the opcodes that leave one value on the stack; a hostile pickle is
made of the same parts.
"""

import struct
import zipfile

import numpy as np

STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
}


def string(text):
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def integer(number):
    return b"J" + struct.pack("<i", number)


def group(*values):
    return b"(" + b"".join(values) + b"t"


def named(module, name):
    return f"c{module}\n{name}\n".encode()


def call(function, *arguments):
    return function + group(*arguments) + b"R"


def dictionary(items):
    """An `OrderedDict` of strings to opcodes."""
    pairs = b"".join(string(key) + value for key, value in items.items())
    return call(named("collections", "OrderedDict")) + b"(" + pairs + b"u"


def tensor(key, dtype, size, shape, strides, offset=0):
    storage = group(
        string("storage"),
        named("torch", STORAGES[dtype]),
        string(key),
        string("cpu"),
        integer(size),
    )
    return call(
        named("torch._utils", "_rebuild_tensor_v2"),
        storage + b"Q",
        integer(offset),
        group(*map(integer, shape)),
        group(*map(integer, strides)),
        b"\x89",  # requires no gradient
        call(named("collections", "OrderedDict")),
    )


def tensor_of(key, array):
    """A contiguous tensor with a storage of its own."""
    strides = [stride // array.itemsize for stride in array.strides]
    return tensor(key, array.dtype.name, array.size, array.shape, strides)


def write(path, opcodes, storages, **options):
    """Writes the archive.

    Args:
        path: the file.
        opcodes: of the object.
        storages: `{key: array}`.
        options: `byteorder`, `compression`, and `others`, more files by name.
    """
    files = {"byteorder": options.get("byteorder", "little"), "version": "3\n"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + opcodes + b".")
        for name, content in (files | options.get("others", {})).items():
            archive.writestr(f"archive/{name}", content)
        for key, array in storages.items():
            archive.writestr(
                f"archive/data/{key}",
                np.ascontiguousarray(array).tobytes(),
                options.get("compression", zipfile.ZIP_STORED),
            )


def write_state_dict(path, arrays):
    """Writes `{name: array}`, each with a storage of its own."""
    keys = {name: str(index) for index, name in enumerate(arrays)}
    opcodes = dictionary({n: tensor_of(keys[n], arrays[n]) for n in arrays})
    write(path, opcodes, {keys[name]: array for name, array in arrays.items()})
