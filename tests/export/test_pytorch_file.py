"""Tensors are read as they were written; a pickle that does more is not run."""

import re
import zipfile

import ml_dtypes
import numpy as np
import pytest

from basic_tf.export import pytorch_file
from tests.export import pytorch_writer

VALUES = np.arange(24, dtype="float32")


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", ml_dtypes.bfloat16, "int64"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_a_tensor_is_read_as_it_was_written(tmp_path, dtype, shape):
    array = np.arange(np.prod(shape), dtype="float32").astype(dtype).reshape(shape)
    pytorch_writer.write_state_dict(tmp_path / "a.pt", {"weight": array})
    tensor = pytorch_file.read(tmp_path / "a.pt")["weight"]
    assert tensor.shape == shape
    assert tensor.read().dtype == array.dtype
    np.testing.assert_array_equal(tensor.read(), array)


def test_tensors_may_be_parts_of_one_storage_in_any_order(tmp_path):
    parts = {
        "rows": pytorch_writer.tensor("0", "float32", 24, (2, 3), (3, 1), offset=6),
        "columns": pytorch_writer.tensor("0", "float32", 24, (4, 6), (1, 4)),
        "one": pytorch_writer.tensor("0", "float32", 24, (), (), offset=23),
        "repeated": pytorch_writer.tensor("0", "float32", 24, (2, 3), (0, 0), offset=5),
    }
    opcodes = pytorch_writer.dictionary(parts)
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {"0": VALUES})
    tensors = pytorch_file.read(tmp_path / "a.pt")
    expected = {
        "rows": VALUES[6:12].reshape(2, 3),
        "columns": VALUES.reshape(6, 4).T,
        "one": VALUES[23],
        "repeated": np.full((2, 3), VALUES[5]),
    }
    assert list(tensors) == list(expected)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.read(), expected[name])


def test_parameters_and_the_versions_of_modules_are_read_over(tmp_path):
    parameter = pytorch_writer.call(
        pytorch_writer.named("torch._utils", "_rebuild_parameter"),
        pytorch_writer.tensor_of("0", VALUES),
        b"\x88",
        pytorch_writer.dictionary({}),
    )
    metadata = pytorch_writer.dictionary({"": pytorch_writer.integer(1)})
    state = b"}" + pytorch_writer.string("_metadata") + metadata + b"sb"
    opcodes = pytorch_writer.dictionary({"weight": parameter}) + state
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {"0": VALUES})
    tensors = pytorch_file.read(tmp_path / "a.pt")
    np.testing.assert_array_equal(tensors["weight"].read(), VALUES)


def attack(tmp_path):
    """A call of `os.system`, and the file that it would make."""
    made = tmp_path / "made"
    command = pytorch_writer.string(f"touch {made}")
    return pytorch_writer.call(pytorch_writer.named("os", "system"), command), made


def test_a_call_is_refused_by_name_and_not_made(tmp_path):
    opcodes, made = attack(tmp_path)
    opcodes = pytorch_writer.dictionary({"weight": opcodes})
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {})
    message = "a.pt cannot be read: its pickle asks for os.system, which is not loaded"
    with pytest.raises(ValueError, match=message):
        pytorch_file.read(tmp_path / "a.pt")
    assert not made.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("__builtin__", "getattr"),
        ("collections", "OrderedDict.__class__"),
        ("torch", "load"),
        ("torch", "nn.Linear"),
        ("numpy", "fromfile"),
    ],
)
def test_a_name_that_is_not_of_tensors_is_refused(tmp_path, module, name):
    opcodes = pytorch_writer.named(module, name)
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {})
    with pytest.raises(ValueError, match=re.escape(f"asks for {module}.{name}")):
        pytorch_file.read(tmp_path / "a.pt")


@pytest.mark.parametrize(
    "target",
    [
        pytorch_writer.tensor_of("0", VALUES),
        pytorch_writer.named("torch", "FloatStorage"),
        pytorch_writer.named("torch._utils", "_rebuild_tensor_v2"),
    ],
    ids=["tensor", "storage type", "function"],
)
@pytest.mark.parametrize("slots", [False, True])
def test_what_was_made_cannot_be_changed(tmp_path, target, slots):
    changes = b"}" + pytorch_writer.string("shape") + pytorch_writer.integer(9) + b"s"
    state = pytorch_writer.group(b"N", changes) if slots else changes
    opcodes = target + state + b"b"
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {"0": VALUES})
    with pytest.raises(ValueError, match="changes a tensor that it has made"):
        pytorch_file.read(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((25,), (1,), 0), ((24,), (1,), 1), ((2, 2), (24, 1), 0)],
)
def test_a_tensor_over_the_end_of_its_storage_is_refused(
    tmp_path, shape, strides, offset
):
    opcodes = pytorch_writer.tensor("0", "float32", 24, shape, strides, offset)
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {"0": VALUES})
    with pytest.raises(ValueError, match="reaches over the end of its storage"):
        pytorch_file.read(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((-2,), (1,), 0), ((2,), (-1,), 5), ((2,), (1,), -1), ((2, 2), (1,), 0)],
)
def test_impossible_sizes_are_refused(tmp_path, shape, strides, offset):
    opcodes = pytorch_writer.tensor("0", "float32", 24, shape, strides, offset)
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {"0": VALUES})
    with pytest.raises(ValueError, match="a tensor is not one"):
        pytorch_file.read(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("values", "compression"),
    [(VALUES[:23], zipfile.ZIP_STORED), (VALUES, zipfile.ZIP_DEFLATED)],
    ids=["short", "compressed"],
)
def test_a_storage_of_another_size_is_refused(tmp_path, values, compression):
    opcodes = pytorch_writer.tensor("0", "float32", 24, (24,), (1,))
    pytorch_writer.write(
        tmp_path / "a.pt", opcodes, {"0": values}, compression=compression
    )
    with pytest.raises(ValueError, match="archive/data/0 has not the size that it"):
        pytorch_file.read(tmp_path / "a.pt")


def test_torchscript_is_refused(tmp_path):
    others = {"constants.pkl": b"\x80\x02).", "code/model.py": b"import os"}
    pytorch_writer.write(tmp_path / "a.pt", b"N", {}, others=others)
    with pytest.raises(ValueError, match="it is a TorchScript archive, which holds"):
        pytorch_file.read(tmp_path / "a.pt")


def test_numbers_of_another_byte_order_are_refused(tmp_path):
    pytorch_writer.write(tmp_path / "a.pt", b"N", {}, byteorder="big")
    with pytest.raises(ValueError, match="its numbers are not little-endian"):
        pytorch_file.read(tmp_path / "a.pt")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off_is_refused(tmp_path, share):
    path = tmp_path / "a.pt"
    pytorch_writer.write_state_dict(path, {"weight": VALUES})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(ValueError, match=r"a\.pt cannot be read: File is not a zip"):
        pytorch_file.read(path)


@pytest.mark.parametrize("opcodes", [b"", b"t", b"R", b"\xff", b"(K"])
def test_a_broken_pickle_is_refused(tmp_path, opcodes):
    pytorch_writer.write(tmp_path / "a.pt", opcodes, {})
    with pytest.raises(ValueError, match=r"a\.pt cannot be read: its pickle is broken"):
        pytorch_file.read(tmp_path / "a.pt")


def test_a_changed_byte_is_found_when_the_tensor_is_read(tmp_path):
    path = tmp_path / "a.pt"
    pytorch_writer.write_state_dict(path, {"weight": VALUES})
    content = path.read_bytes()
    path.write_bytes(content.replace(np.float32(7).tobytes(), np.float32(8).tobytes()))
    tensor = pytorch_file.read(path)["weight"]
    with pytest.raises(ValueError, match="archive/data/0: Bad CRC-32"):
        tensor.read()


def test_a_zip_archive_of_other_things_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"it has no data\.pkl"):
        pytorch_file.read(tmp_path / "a.zip")
