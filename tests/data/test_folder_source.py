import pytest

from basic_tf.data import folder_source
from tests.data.source_files import picture


def test_folders_are_classes_and_captions(tmp_path, caplog):
    for name in (
        "red fox/1.png",
        "red fox/more/2.JPG",
        "cat/3.webp",
        "cat/.hidden.png",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(picture())
    (tmp_path / "cat/notes.txt").write_text("x")
    (tmp_path / "top.png").write_bytes(picture())
    examples = folder_source.load(str(tmp_path))
    assert examples.keys == ["cat/3.webp", "red fox/1.png", "red fox/more/2.JPG"]
    assert examples.images.paths == [f"{tmp_path}/{key}" for key in examples.keys]
    assert examples.captions == ["cat", "red fox", "red fox"]
    assert examples.label_names == ["cat", "red fox"]
    assert examples.labels == [0, 1, 1]
    assert "2 files left out" in caplog.text


def test_a_folder_without_classes_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    with pytest.raises(ValueError, match="no folder with images in it"):
        folder_source.load(str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no folder .*gone"):
        folder_source.load(str(tmp_path / "gone"))
