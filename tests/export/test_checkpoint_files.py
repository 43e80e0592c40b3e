"""Every format gives the same tensors; a file of another kind is named as such."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest

from basic_tf.export import checkpoint_files
from tests.export import pytorch_writer

ARRAYS = {
    "weight": np.linspace(-3, 3, 12, dtype="float32").reshape(3, 4),
    "scale": np.array(2.5, "float32"),
}
SAFE_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64"}
FORMATS = ("safetensors", "pytorch")


def write_safetensors(path, arrays):
    """By the format's description: a length, a JSON header, and the bytes."""
    header, content = {}, b""
    for name, array in arrays.items():
        header[name] = {
            "dtype": SAFE_NAMES.get(array.dtype.name, "BF16"),
            "shape": array.shape,
            "data_offsets": [len(content), len(content) + array.nbytes],
        }
        content += array.tobytes()
    encoded = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + content)


def write(path, format_name, arrays):
    writers = {
        "safetensors": write_safetensors,
        "pytorch": pytorch_writer.write_state_dict,
    }
    writers[format_name](path, arrays)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ml_dtypes.bfloat16])
def test_floats_of_any_width_are_read_as_float32(tmp_path, format_name, dtype):
    arrays = {name: array.astype(dtype) for name, array in ARRAYS.items()}
    write(tmp_path / "file", format_name, arrays)
    tensors = checkpoint_files.read(tmp_path / "file")
    assert set(tensors) == set(ARRAYS)
    for name, tensor in tensors.items():
        assert tensor.shape == ARRAYS[name].shape
        assert tensor.is_float
        assert tensor.read().dtype == np.float32
        np.testing.assert_array_equal(tensor.read(), arrays[name].astype("float32"))


@pytest.mark.parametrize("format_name", FORMATS)
def test_integers_are_told_from_floats(tmp_path, format_name):
    write(tmp_path / "file", format_name, {"count": np.array([3, 4])})
    assert not checkpoint_files.read(tmp_path / "file")["count"].is_float


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_prefix_of_distributed_training_is_taken_off(tmp_path, format_name):
    arrays = {f"module.{name}": array for name, array in ARRAYS.items()}
    write(tmp_path / "file", format_name, arrays)
    assert set(checkpoint_files.read(tmp_path / "file")) == set(ARRAYS)


def test_the_state_dict_of_a_training_checkpoint_is_read(tmp_path):
    weight = pytorch_writer.tensor_of("0", ARRAYS["weight"])
    state_dict = pytorch_writer.dictionary({"module.weight": weight})
    moments = pytorch_writer.tensor_of("1", ARRAYS["weight"])
    content = {
        "epoch": pytorch_writer.integer(3),
        "name": pytorch_writer.string("a run"),
        "state_dict": state_dict,
        "optimizer": pytorch_writer.dictionary({"exp_avg": moments}),
    }
    pytorch_writer.write(
        tmp_path / "file",
        pytorch_writer.dictionary(content),
        {"0": ARRAYS["weight"], "1": ARRAYS["weight"]},
    )
    tensors = checkpoint_files.read(tmp_path / "file")
    assert list(tensors) == ["weight"]
    np.testing.assert_array_equal(tensors["weight"].read(), ARRAYS["weight"])


@pytest.mark.parametrize("length", [0, 4, 9, 40, -1])
def test_a_safetensors_file_that_is_cut_off_is_refused(tmp_path, length):
    path = tmp_path / "file"
    write_safetensors(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match="file is no whole safetensors or PyTorch"):
        checkpoint_files.read(path)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("# A model\n\nIts weights are elsewhere.\n")
    with pytest.raises(ValueError, match="file is no whole safetensors or PyTorch"):
        checkpoint_files.read(tmp_path / "file")


def test_the_format_of_old_pytorch_is_refused(tmp_path):
    # The number that starts such a file, as PyTorch's source has it.
    number = 0x1950A86A20F9469CFC6C
    pickled = b"\x80\x02\x8a\x0a" + number.to_bytes(10, "little") + b"."
    (tmp_path / "file").write_bytes(pickled + b"\x80\x02M\xe9\x03.")
    with pytest.raises(ValueError, match=r"file is in PyTorch's format of before 1\.6"):
        checkpoint_files.read(tmp_path / "file")


def test_a_file_that_is_not_there_is_said_to_be_none(tmp_path):
    with pytest.raises(ValueError, match="gone is no file"):
        checkpoint_files.read(tmp_path / "gone")


@pytest.mark.parametrize(
    ("opcodes", "message"),
    [
        (pytorch_writer.integer(3), "holds a int, not a state dict"),
        (
            pytorch_writer.dictionary({"lr": pytorch_writer.integer(3)}),
            "holds no tensor under lr",
        ),
    ],
)
def test_an_object_that_is_no_state_dict_is_refused(tmp_path, opcodes, message):
    pytorch_writer.write(tmp_path / "file", opcodes, {})
    with pytest.raises(ValueError, match=message):
        checkpoint_files.read(tmp_path / "file")
