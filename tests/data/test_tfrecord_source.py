import pytest
import tensorflow as tf

from basic_tf.data import tfrecord_source
from tests.data.source_files import image_bytes, picture, reasons

RED, BLUE = picture("red"), picture("blue")


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as file:
        for record in records:
            file.write(record)
    return str(path)


def record(number, **fields):
    content = {"image_bytes": RED + bytes([number]), "texts": [f"text {number}"]}
    return tfrecord_source.to_record(**content | {"key": f"k{number}"} | fields)


def test_what_is_written_is_read(tmp_path):
    write(tmp_path / "0.tfrecord", [record(0), record(1, texts=["a", "", "ü\0"])])
    write(
        tmp_path / "1.tfrecord",
        [record(2, texts=[], labels=["dog", "cat"]), record(3, labels=["cat"], key="")],
    )
    examples = tfrecord_source.load(f"{tmp_path}/{{0,1}}.tfrecord")
    assert examples.captions == ["text 0", "a", "", "ü\0", "dog and cat", "text 3"]
    assert examples.caption_counts.tolist() == [1, 3, 1, 1]
    assert examples.label_names == ["cat", "dog"]
    assert examples.label_sets == [[], [], [1, 0], [0]]
    assert examples.keys[:3] == ["k0", "k1", "k2"]
    assert examples.keys[3].startswith("byte ")
    assert image_bytes(examples) == [RED + bytes([number]) for number in range(4)]
    kept = examples.select([False, True, False, True])
    assert image_bytes(kept) == [RED + b"\1", RED + b"\3"]
    assert kept.captions == ["a", "", "ü\0", "text 3"]


def test_a_caption_that_is_not_utf_8_is_read(tmp_path):
    content = record(0).replace(b"text 0", b"caf\xe9 0")
    path = write(tmp_path / "0.tfrecord", [content])
    assert tfrecord_source.load(path).captions == ["caf\ufffd 0"]


def test_token_ids_beside_the_captions_are_for_others(tmp_path):
    content = record(0, texts=["a", "b"], token_ids=[[5, 1], [6, 1]])
    example = tf.train.Example.FromString(content)
    ids = example.features.feature["token_ids"].int64_list.value
    assert list(ids) == [5, 1, 6, 1]
    examples = tfrecord_source.load(write(tmp_path / "0.tfrecord", [content]))
    assert examples.captions == ["a", "b"]


def test_broken_records_are_skipped_and_the_others_come_once(tmp_path):
    other = tf.train.Example(
        features=tf.train.Features(
            feature={
                "image": tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
            }
        )
    )
    records = [
        record(0),
        record(1),
        record(2, image_bytes=b""),
        record(3, texts=[]),
        b"not an example \xff",
        other.SerializeToString(),
        record(6),
    ]
    path = write(tmp_path / "0.tfrecord", records)
    offsets, _ = tfrecord_source.record_offsets(path)
    content = bytearray((tmp_path / "0.tfrecord").read_bytes())
    content[offsets[1] + 40] ^= 1
    (tmp_path / "0.tfrecord").write_bytes(content)
    examples = tfrecord_source.load(path)
    assert examples.captions == ["text 0", "text 6"]
    assert image_bytes(examples) == [RED + b"\0", RED + b"\6"]
    damaged = [
        ("0.tfrecord", f"byte {offsets[i]}", "damaged record") for i in (1, 4, 5)
    ]
    assert sorted(reasons(examples)) == sorted(
        [
            *damaged,
            ("0.tfrecord", "k2", "record without an image"),
            ("0.tfrecord", "k3", "record without a caption"),
        ]
    )


@pytest.mark.parametrize("cut", [1, 100, 9])
def test_a_truncated_tail_is_told_and_what_is_before_it_read(tmp_path, cut):
    path = write(tmp_path / "0.tfrecord", [record(0), record(1)])
    offsets, end = tfrecord_source.record_offsets(path)
    with open(path, "r+b") as file:
        file.truncate(end - cut if cut != 9 else offsets[1] + 9)
    examples = tfrecord_source.load(path)
    assert examples.captions == ["text 0"]
    expected = f"byte {offsets[1]}", "rest of a file, cut off or damaged"
    assert reasons(examples) == [("0.tfrecord", *expected)]


def test_a_file_without_records_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no usable example$"):
        tfrecord_source.load(write(tmp_path / "0.tfrecord", []))
    with pytest.raises(FileNotFoundError, match=r"no file .*gone"):
        tfrecord_source.load(str(tmp_path / "gone.tfrecord"))
