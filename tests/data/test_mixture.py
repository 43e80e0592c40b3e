import numpy as np
import pytest

from basic_tf.data import mixture
from tests.data.source_files import image_bytes, picture, write_tar


@pytest.fixture
def source(tmp_path):
    """Two captioned images, three of two classes, and their weights."""
    members = {"0.png": picture("red"), "0.txt": "scarlet", "1.png": b"?", "1.txt": "x"}
    write_tar(tmp_path / "0.tar", members | {"2.png": picture("blue")})
    for number, name in enumerate(["cat", "cat", "dog"]):
        path = tmp_path / f"classes/{name}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture("green") + bytes([number]))
    return ((f"webdataset:{tmp_path}/0.tar", 3), (f"folder:{tmp_path}/classes", 1))


def test_labelled_images_join_as_texts(source):
    examples = mixture.load(source)
    assert examples.captions == ["scarlet", "x", "cat", "cat", "dog"]
    assert examples.labels == [-1, -1, 0, 0, 1]
    assert examples.label_sets == [[], [], [0], [0], [1]]
    assert examples.label_names == ["cat", "dog"]
    assert examples.groups() == [(2, 0.75), (3, 0.25)]
    assert examples.caption_counts.tolist() == [1] * 5
    assert [bad.reason for bad in examples.bad] == ["example without a caption"]
    green = [picture("green") + bytes([number]) for number in range(3)]
    assert image_bytes(examples) == [picture("red"), b"?", *green]


def test_the_labelled_part_serves_the_supervised_phase(source):
    labelled = mixture.load(source).labelled()
    assert labelled.groups() == [(3, 0.25)]
    assert len(image_bytes(labelled)) == 3


def test_labels_of_the_same_name_are_one(tmp_path):
    for folder, names in (("one", ["cat", "dog"]), ("two", ["ant", "dog"])):
        for name in names:
            (tmp_path / folder / name).mkdir(parents=True)
            (tmp_path / folder / name / "0.png").write_bytes(picture())
    parts = [(f"folder:{tmp_path}/{folder}", 1) for folder in ("one", "two")]
    examples = mixture.load(parts)
    assert examples.label_names == ["cat", "dog", "ant"]
    assert examples.labels == [0, 1, 2, 1]


def test_sources_with_one_and_with_several_captions_mix(tmp_path):
    rows = "image,caption,title\na.png,1,2\n"
    (tmp_path / "pairs.csv").write_text(rows)
    table = f"csv:{tmp_path}/pairs.csv"
    examples = mixture.load([(table, 1), (f"{table}?caption=title&caption=caption", 1)])
    assert examples.captions == ["1", "2", "1"]
    np.testing.assert_array_equal(examples.caption_counts, [1, 2])


def test_a_single_source_is_itself(source):
    examples = mixture.load(source[1][0])
    assert examples.groups() == [(3, 1.0)]


def test_a_mixture_may_be_a_line(tmp_path):
    (tmp_path / "a + b.csv").write_text("image,caption\na.png,1\n")
    table = f"csv:{tmp_path}/a + b.csv"
    for line, weights in (
        (f"3*{table} + 1*{table}", (0.75, 0.25)),
        (f".5*{table}", (1.0,)),
    ):
        examples = mixture.load(line)
        assert examples.captions == ["1"] * len(weights)
        assert examples.weights == weights
    assert mixture.load(table).groups() == [(1, 1.0)]


@pytest.mark.parametrize("weight", [0, -1, float("nan")])
def test_a_weight_must_be_more_than_0(weight):
    with pytest.raises(ValueError, match=r"the weight of folder:x is .* more than 0"):
        mixture.load([("folder:x", weight)])
