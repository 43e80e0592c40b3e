import json

import numpy as np
import pytest

from basic_tf.data import example_table
from basic_tf.data.example_table import BadExample, Examples

THREE = Examples(
    images=[b"0", b"1", b"2"],
    captions=[*"abcdef"],
    labels=[1, -1, 0],
    label_sets=[[1], [], [0, 1]],
    label_names=["x", "y"],
    keys=["k0", "k1", "k2"],
    caption_counts=np.array([1, 3, 2]),
    origins=np.array([0, 0, 1]),
    weights=(0.25, 0.75),
    pixels=np.arange(3 * 12, dtype=np.uint8).reshape(3, 2, 2, 3),
)


def test_everything_of_an_example_is_selected_with_it():
    kept = THREE.select([True, False, True])
    assert kept.images == [b"0", b"2"]
    assert kept.captions == ["a", "e", "f"]
    assert kept.labels == [1, 0] and kept.label_sets == [[1], [0, 1]]
    assert kept.keys == ["k0", "k2"]
    assert kept.caption_counts.tolist() == [1, 2]
    assert kept.groups() == [(1, 0.25), (1, 0.75)]
    np.testing.assert_array_equal(kept.pixels, THREE.pixels[[0, 2]])
    with pytest.raises(ValueError, match="2 entries for 3 examples"):
        THREE.select([True, False])


def test_an_example_goes_with_its_last_caption():
    kept = THREE.select_captions([False, True, False, True, True, True])
    assert kept.keys == ["k1", "k2"]
    assert kept.captions == ["b", "d", "e", "f"]
    assert kept.caption_counts.tolist() == [2, 2]


def test_the_labelled_part_is_a_source_less():
    assert THREE.labelled().keys == ["k0", "k2"]
    assert THREE.select([False, True, True]).labelled().groups() == [(1, 0.75)]
    unlabelled = Examples([b""], [""])
    assert unlabelled.labelled() is unlabelled


BAD = [
    BadExample("a.tar", "0", "empty image"),
    BadExample("b.tar", "", "rest of an archive"),
    BadExample("a.tar", "1", "empty image"),
]


def test_what_is_broken_is_described_by_reason_and_file():
    expected = "2 empty image, 1 rest of an archive (2 in a.tar, b.tar)"
    assert example_table.describe(BAD) == expected
    many = [BadExample(f"{n}.tar", f"k{n}", "empty image") for n in range(6)]
    assert example_table.describe(many).endswith("3.tar, k3, 4.tar, k4, ...)")


def test_the_list_of_what_is_broken_is_json_lines():
    rows = [json.loads(line) for line in example_table.to_json_lines(BAD).splitlines()]
    assert rows[1] == {"file": "b.tar", "key": "", "reason": "rest of an archive"}


def test_too_much_that_is_broken_is_refused_with_the_counts():
    examples = Examples([b""] * 7, [""] * 7, bad=tuple(BAD))
    example_table.refuse_bad("csv:a", examples, 0.3)
    message = r"csv:a: 3 of 10 examples are broken, more than max_bad_fraction 0\.29: 2"
    with pytest.raises(ValueError, match=message):
        example_table.refuse_bad("csv:a", examples, 0.29)
