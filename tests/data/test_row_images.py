"""What is seen of images, and that they are the same when they are read again."""

import dataclasses

import numpy as np
import pytest

from basic_tf.data import contamination, example_rows, filters, row_images
from basic_tf.data.example_table import BadExample, Examples
from basic_tf.data.image_places import Files
from tests.data.image_files import encode, smooth
from tests.data.source_files import cut_jpeg, picture


@pytest.fixture
def examples(tmp_path):
    contents = {
        "a.png": encode(smooth(9, 13), "PNG"),
        "cut.jpg": cut_jpeg(),
        "b.png": picture("blue"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    names = ["a.png", "cut.jpg", "gone.png", "b.png"]
    paths = [str(tmp_path / name) for name in names]
    return Examples(Files(paths), ["x"] * 4, keys=names)


def test_sides_digests_and_grays_are_those_of_the_files(examples, tmp_path):
    rows = list(example_rows.iterate(examples))
    sight = row_images.see(rows, examples.images.at([]), with_grays=True)
    assert sight.sides == {0: 9, 3: 4}
    assert sight.digests == {
        index: filters.image_digest((tmp_path / name).read_bytes())
        for index, name in [(0, "a.png"), (3, "b.png")]
    }
    assert sight.bad == {
        1: BadExample(str(tmp_path / "cut.jpg"), "cut.jpg", "undecodable image"),
        2: BadExample(str(tmp_path / "gone.png"), "gone.png", "missing image"),
    }
    usable = examples.select([True, False, False, True])
    (expected,) = contamination.gray_batches(usable)
    np.testing.assert_array_equal(np.stack([sight.grays[0], sight.grays[3]]), expected)
    assert not row_images.see(rows[:1], examples.images.at([])).grays


def test_images_are_read_again_unless_they_have_changed(examples, tmp_path):
    rows = list(example_rows.iterate(examples))[3:]
    sight = row_images.see(rows, examples.images)
    rows = [dataclasses.replace(rows[0], digest=sight.digests[0])]
    assert list(row_images.read_again(rows, examples.images)) == [picture("blue")]
    (tmp_path / "b.png").write_bytes(picture("red"))
    with pytest.raises(ValueError, match=r"b\.png: its image has changed since"):
        list(row_images.read_again(rows, examples.images))
