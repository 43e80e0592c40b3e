import json

import pytest
import webdataset

from basic_tf.data import webdataset_source
from tests.data.source_files import image_bytes, picture, reasons, write_tar

RED, BLUE = picture("red"), picture("blue", "JPEG")


def load(folder, members):
    write_tar(folder / "0.tar", members)
    return webdataset_source.load(str(folder / "0.tar"))


def test_the_files_of_a_key_are_an_example(tmp_path):
    members = {
        "000.jpg": BLUE,
        "000.json": json.dumps({"caption": "not this", "key": "000", "exif": None}),
        "000.txt": "blue",
        "001.json": '{"caption": "red", "width": 4}',
        "001.png": RED,
    }
    examples = load(tmp_path, members)
    assert examples.captions == ["blue", "red"]
    assert examples.keys == ["000", "001"]
    assert image_bytes(examples) == [BLUE, RED]
    assert not examples.bad and not examples.label_sets


def test_shards_are_read_in_order(tmp_path):
    for number in range(3):
        members = {f"{key}.jpg": BLUE + bytes([number, key]) for key in range(2)}
        captions = {f"{key}.txt": f"{number}{key}" for key in range(2)}
        both = dict(sorted((members | captions).items()))
        write_tar(tmp_path / f"{number:05d}.tar", both)
    examples = webdataset_source.load(f"{tmp_path}/{{00002..00001}}.tar")
    assert examples.captions == ["20", "21", "10", "11"]
    expected = [BLUE + bytes([n, key]) for n in (2, 1) for key in (0, 1)]
    assert image_bytes(examples) == expected
    kept = examples.select([False, True, True, False])
    assert image_bytes(kept) == expected[1:3]
    assert kept.images.file_of(1).endswith("00001.tar")


def test_shards_that_the_webdataset_package_writes_are_read(tmp_path):
    captions = ["größer 🟥", "", "word " * 500, "nul \0 here", "five"]
    with webdataset.ShardWriter(f"{tmp_path}/%05d.tar", maxcount=2, verbose=0) as file:
        for number, caption in enumerate(captions):
            content = {"jpg": BLUE + bytes([number]), "txt": caption}
            fields = {"caption": "not this", "width": 4}
            file.write({"__key__": f"a/b/{number}", "json": fields, **content})
    examples = webdataset_source.load(f"{tmp_path}/{{00000..00002}}.tar")
    assert examples.captions == captions
    assert examples.keys == [f"a/b/{number}" for number in range(5)]
    assert image_bytes(examples) == [BLUE + bytes([number]) for number in range(5)]
    assert not examples.bad


def test_examples_have_the_keys_that_the_webdataset_package_gives_them(tmp_path):
    names = ["1", "a/1", "a.b/c/2", "./3", "x y/é", "long/" * 40 + "4"]
    members = {}
    for number, name in enumerate(names):
        content = {".PNG": RED + bytes([number]), ".seg.png": b"", ".txt": name}
        members |= {name + extension: content[extension] for extension in content}
    examples = load(tmp_path, members)
    with open(tmp_path / "0.tar", "rb") as file:
        archive = {"url": file.name, "stream": file}
        files = webdataset.tariterators.tar_file_expander([archive])
        peers = list(webdataset.tariterators.group_by_keys(files))
    assert examples.keys == [peer["__key__"] for peer in peers] == names
    assert examples.captions == [peer["txt"].decode() for peer in peers]
    assert image_bytes(examples) == [peer["png"] for peer in peers]


def test_extensions_in_capitals_and_folders_within_are_read(tmp_path):
    members = {
        "a/1.JPG": BLUE,
        "a/1.TXT": "one",
        "b/1.seg.png": RED,  # another part of the example, not its image
        "b/1.jpeg": BLUE,
        "b/1.txt": "two",
        "notes": "x",
        ".hidden": "x",
    }
    examples = load(tmp_path, members)
    assert examples.keys == ["a/1", "b/1"]
    assert examples.captions == ["one", "two"]
    assert image_bytes(examples) == [BLUE, BLUE]


def test_several_captions_and_labels_come_from_json(tmp_path):
    fields = [{"caption": ["one", "two"]}, {"labels": ["dog", "cat"]}, {"label": "cat"}]
    members = {}
    for key, content in enumerate(fields):
        members |= {f"{key}.png": RED, f"{key}.json": json.dumps(content)}
    examples = load(tmp_path, members)
    assert examples.captions == ["one", "two", "dog and cat", "cat"]
    assert examples.caption_counts.tolist() == [2, 1, 1]
    assert examples.label_names == ["cat", "dog"]
    assert examples.label_sets == [[], [1, 0], [0]]
    assert examples.labels == [-1, 1, 0]


@pytest.mark.parametrize(
    ("content", "caption"),
    [
        (b"", ""),
        (b"NA", "NA"),
        (b"nul \0 here", "nul \0 here"),
        ("🟥 ü".encode(), "🟥 ü"),
        (b"caf\xe9", "caf\ufffd"),
        (b"word " * 500, "word " * 500),
    ],
)
def test_captions_are_read_as_they_are(tmp_path, content, caption):
    assert load(tmp_path, {"0.png": RED, "0.txt": content}).captions == [caption]


def test_broken_examples_are_skipped_and_the_others_come_once(tmp_path):
    members = {
        "0.png": RED,
        "0.txt": "zero",
        "1.png": RED,
        "2.txt": "two",
        "3.png": b"",
        "3.txt": "three",
        "4.png": RED,
        "4.json": '{"caption": ',
        "5.tiff": RED,
        "5.txt": "five",
        "6.png": RED,
        "6.json": '{"caption": null}',
        "7.png": BLUE,
        "7.txt": "seven",
    }
    examples = load(tmp_path, members)
    assert examples.captions == ["zero", "seven"]
    assert image_bytes(examples) == [RED, BLUE]
    assert reasons(examples) == [
        ("0.tar", "1", "example without a caption"),
        ("0.tar", "2", "example without an image"),
        ("0.tar", "3", "empty image"),
        ("0.tar", "4", "JSON that cannot be read"),
        ("0.tar", "5", "example without an image"),
        ("0.tar", "6", "example without a caption"),
    ]


def test_a_truncated_tail_is_told_and_what_is_before_it_read(tmp_path):
    path = tmp_path / "0.tar"
    members = {"0.txt": "zero", "0.png": RED, "1.txt": "one", "1.png": RED * 20}
    write_tar(path, members)
    start = path.read_bytes().index(b"1.png")
    for end in (start + 100, start + 600, start + 512):
        write_tar(path, members)
        path.write_bytes(path.read_bytes()[:end])
        examples = webdataset_source.load(str(path))
        assert image_bytes(examples) == [RED]
        (file, key, reason), other = sorted(reasons(examples))
        assert file == "0.tar" and key == "" and "rest of an archive" in reason
        assert other == ("0.tar", "1", "example without an image")


def test_a_damaged_header_is_told(tmp_path):
    path = tmp_path / "0.tar"
    write_tar(path, {"0.txt": "zero", "0.png": RED, "1.txt": "one", "1.png": RED})
    content = bytearray(path.read_bytes())
    content[content.index(b"1.txt")] ^= 255
    path.write_bytes(content)
    examples = webdataset_source.load(str(path))
    assert examples.captions == ["zero"]
    (bad,) = examples.bad
    assert bad.reason == "rest of an archive, unreadable from byte 2048 on"


@pytest.mark.parametrize(
    "content", [b"", b"not an archive " * 99, b"\x1f\x8b\x08" * 400]
)
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "0.tar").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"no usable example.* from byte 0 on \(.*tar\)"
    ):
        webdataset_source.load(str(tmp_path / "0.tar"))
