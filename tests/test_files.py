import concurrent.futures
import pathlib

import pytest

from basic_tf import files


@pytest.mark.parametrize("content", ["naïve", b"\xff\x00"])
def test_text_and_bytes_are_written_as_they_are(tmp_path, content):
    files.write_whole(tmp_path / "a.txt", content)
    expected = content.encode() if isinstance(content, str) else content
    assert (tmp_path / "a.txt").read_bytes() == expected
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_the_old_content(tmp_path, monkeypatch):
    files.write_whole(tmp_path / "a.txt", "old")

    def fail(self, content):
        with self.open("wb") as file:
            file.write(content[:1])
        raise OSError("disk full")

    monkeypatch.setattr(pathlib.Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_whole(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_writers_at_once_leave_the_content_of_one(tmp_path):
    contents = [bytes([number]) * 200_000 for number in range(8)]

    def write(content):
        for _ in range(20):
            files.write_whole(tmp_path / "a.txt", content)
            assert (tmp_path / "a.txt").read_bytes() in contents

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(write, contents))
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_what_is_not_json_is_named(tmp_path):
    (tmp_path / "a.json").write_text('{"a": "ü"}', encoding="utf-8")
    assert files.read_json(tmp_path / "a.json") == {"a": "ü"}
    (tmp_path / "a.json").write_bytes(b'{"a": ')
    with pytest.raises(ValueError, match=r"a\.json is not JSON: "):
        files.read_json(tmp_path / "a.json")
