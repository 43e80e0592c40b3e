import os

import numpy as np
import pytest
from PIL import Image

from basic_tf import memory
from basic_tf.data import checking, csv_source, sources, webdataset_source
from tests.data.image_files import BOMBS, LOSSLESS, encode, pil_decode, smooth
from tests.data.source_files import cut_jpeg, picture, reasons, write_tar


@pytest.fixture
def table(tmp_path):
    """A table whose second to sixth images cannot be decoded."""
    contents = {
        "a.png": picture("red"),
        "text.png": b"not an image",
        "empty.png": b"",
        "cut.jpg": cut_jpeg(),
        "b.png": picture("blue"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.png").mkdir()
    names = ["a.png", "text.png", "gone.png", "empty.png", "cut.jpg", "folder.png"]
    rows = [f"{name},x {name}" for name in [*names, "b.png"]]
    (tmp_path / "pairs.csv").write_text("\n".join(["image,caption", *rows]))
    return csv_source.load(str(tmp_path / "pairs.csv"))


@pytest.mark.parametrize("image_size", [None, 4, 20_000])
def test_broken_images_are_dropped_and_named(table, image_size):
    examples = checking.check_images(table, image_size)
    assert examples.captions == ["x a.png", "x b.png"]
    assert [
        (file, key.split(" ")[-1], why) for file, key, why in reasons(examples)
    ] == [
        ("text.png", "3", "undecodable image"),
        ("gone.png", "4", "missing image"),
        ("empty.png", "5", "undecodable image"),
        ("cut.jpg", "6", "undecodable image"),
        ("folder.png", "7", "unreadable image"),
    ]
    if image_size == 4:
        red_and_blue = np.stack([[255, 0, 0], [0, 0, 255]])[:, None, None]
        expected = np.broadcast_to(red_and_blue, (2, 4, 4, 3))
        np.testing.assert_array_equal(examples.pixels, expected)
    else:
        assert examples.pixels is None


def test_a_file_that_may_not_be_read_is_named(table):
    path = table.images.paths[0]
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    assert reasons(checking.check_images(table))[0][2] == "unreadable image"


def test_what_was_skipped_before_stays_in_the_list(tmp_path):
    members = {"0.png": picture(), "1.jpg": cut_jpeg(), "1.txt": "one"}
    members |= {"2.png": picture(), "2.txt": "two"}
    write_tar(tmp_path / "0.tar", members)
    examples = webdataset_source.load(str(tmp_path / "0.tar"))
    assert reasons(checking.check_images(examples)) == [
        ("0.tar", "0", "example without a caption"),
        ("0.tar", "1", "undecodable image"),
    ]


@pytest.mark.parametrize("image_size", [None, 4])
def test_bombs_are_dropped_by_their_header_and_named(image_size):
    images = [picture("red"), *BOMBS.values()]
    memory.forget_peak()
    before = memory.peak_memory_mb()
    examples = sources.Examples(images, [""] * len(images))
    checked = checking.check_images(examples, image_size)
    assert len(checked) == 1
    reason = "image of more than 178956970 pixels"
    assert [bad.reason for bad in checked.bad] == [reason] * len(BOMBS)
    # The least of them would be 500 MB of bytes.
    assert memory.peak_memory_mb() - before < 200


def test_every_kind_of_image_passes_with_its_size():
    images = [
        *LOSSLESS.values(),
        encode(smooth(9, 13).convert("CMYK"), "JPEG"),
        encode(Image.new("L", (13, 9)), "JPEG"),
    ]
    examples = sources.Examples(images, [""] * len(images))
    sizes = checking.image_sizes(examples)
    expected = [pil_decode(image).shape[:2] for image in images]
    np.testing.assert_array_equal(sizes, expected)
    assert checking.check_images(examples) is examples
