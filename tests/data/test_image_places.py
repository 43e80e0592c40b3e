import pathlib
import pickle
import re

import numpy as np
import pytest
import tensorflow as tf

from basic_tf.data import image_places
from tests import child_processes

READ = pathlib.Path("/proc/self/io")


def several(folder):
    """Five images: two in memory, one file, two parts of a file."""
    (folder / "whole").write_bytes(b"two")
    (folder / "joined").write_bytes(b"..three.four")
    rows = np.array([[0, 2, 5], [0, 8, 4]])
    return image_places.Several(
        [
            image_places.InMemory([b"zero", b"one"]),
            image_places.Files([str(folder / "whole")]),
            image_places.FileParts([str(folder / "joined")], rows),
        ]
    )


def read(places, indices):
    dataset = tf.data.Dataset.from_tensor_slices(indices)
    dataset = dataset.map(places.reader(), num_parallel_calls=2)
    return list(dataset.as_numpy_iterator())


def bytes_read():
    """By this process, of files and pipes."""
    return int(re.search(r"rchar: (\d+)", READ.read_text())[1])


def test_the_places_of_several_sources_are_one_row(tmp_path):
    places = several(tmp_path)
    assert len(places) == 5
    expected = [b"four", b"zero", b"two", b"one", b"three"]
    assert read(places, [4, 0, 2, 1, 3]) == expected
    names = [places.file_of(index).split("/")[-1] for index in range(5)]
    assert names == ["", "", "whole", "joined", "joined"]


@pytest.mark.parametrize("keep", [[0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [1, 1, 0, 0, 0]])
def test_places_are_selected_each_from_its_own(tmp_path, keep):
    words = [b"zero", b"one", b"two", b"three", b"four"]
    kept = several(tmp_path).select(np.array(keep, bool))
    expected = [word for word, is_kept in zip(words, keep, strict=True) if is_kept]
    assert read(kept, list(range(sum(keep)))) == expected
    assert len(kept) == sum(keep)


@pytest.mark.parametrize("part", range(3))
def test_images_are_found_by_their_places_alone(tmp_path, part):
    images = several(tmp_path).parts[part]
    indices = list(range(len(images)))
    places = [images.place_of(index) for index in indices[::-1]]
    places = pickle.loads(pickle.dumps(places))
    kind = pickle.loads(pickle.dumps(images.at([])))
    assert len(kind) == 0
    assert read(kind.at(places), indices[::-1]) == read(images, indices)


def test_a_part_beyond_the_end_of_its_file_fails(tmp_path):
    places = several(tmp_path)
    read = places.reader()
    (tmp_path / "joined").write_bytes(b"..three.fo")
    with pytest.raises(tf.errors.DataLossError, match="joined ends before byte 12"):
        read(tf.constant(4))
    with pytest.raises(tf.errors.OpError, match="joined ends before byte 12"):
        tf.function(read)(tf.constant(4))
    (tmp_path / "joined").unlink()
    with pytest.raises(tf.errors.UnavailableError, match=r"No such file.*joined"):
        read(tf.constant(4))


@pytest.mark.skipif(not READ.is_file(), reason="Linux counts what a process reads")
def test_no_byte_before_a_part_is_read(tmp_path):
    """Else an epoch would take the square of the length of an archive."""
    (tmp_path / "parts").write_bytes(bytes(10_000_000) + b"part")
    rows = np.array([[0, 10_000_000, 4]])
    read = image_places.FileParts([str(tmp_path / "parts")], rows).reader()
    before = bytes_read()
    assert [read(tf.constant(0)).numpy() for _ in range(20)] == [b"part"] * 20
    assert bytes_read() - before < 10_000_000


PROGRAM = """
import sys, time
import numpy as np, tensorflow as tf
from basic_tf.data import image_places
from tests import child_processes
tf.config.experimental.enable_op_determinism()
tf.random.set_seed(0)
path = sys.argv[1]
rows = np.array([[0, i, 10] for i in range(64)])
read = image_places.FileParts([path], rows).reader()
indices = tf.data.Dataset.range(64).map(read, num_parallel_calls=8)
print(b"".join(indices.as_numpy_iterator()).hex())
"""


def test_parts_are_read_where_operations_are_deterministic(tmp_path):
    content = np.random.default_rng(0).bytes(80)
    (tmp_path / "parts").write_bytes(content)
    command = ["-c", PROGRAM, str(tmp_path / "parts")]
    process = child_processes.run(command)
    assert process.returncode == 0, process.stderr
    expected = b"".join(content[i : i + 10] for i in range(64)).hex()
    assert process.stdout.strip() == expected
