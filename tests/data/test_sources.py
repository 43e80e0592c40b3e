import pytest
from PIL import Image

from basic_tf.data import sources


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("a", "b"):
        Image.new("RGB", (4, 4), "red").save(tmp_path / f"images/{name}.png")
    return tmp_path


def write_csv(folder, text, encoding="utf-8"):
    path = folder / "pairs.csv"
    path.write_bytes(text.encode(encoding))
    return f"csv:{path}"


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_csv_is_read_beside_its_images(folder, delimiter, encoding):
    rows = [["filepath", "title"], ["images/a.png", "NA"], [], ["images/b.png", ""]]
    text = "\n".join(delimiter.join(row) for row in rows)
    examples = sources.load(write_csv(folder, text, encoding))
    assert examples.captions == ["NA", ""]
    assert examples.images == [str(folder / f"images/{n}.png") for n in "ab"]


def test_quoted_commas_and_newlines_belong_to_the_caption(folder):
    text = 'image,caption\nimages/a.png,"red, and\nsquare 🟥"\n'
    assert sources.load(write_csv(folder, text)).captions == ["red, and\nsquare 🟥"]


def test_bad_rows_are_dropped_counted_and_named(folder, caplog):
    (folder / "text.png").write_text("not an image")
    (folder / "empty.png").touch()
    whole = (folder / "images/a.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    names = ["images/a.png", "text.png", "gone.png", "empty.png", "cut.png"]
    text = "image,caption\n" + "".join(f"{name},x\n" for name in names)
    examples = sources.load(write_csv(folder, text))
    assert examples.images == [str(folder / "images/a.png")]
    assert "dropped of 5 rows: 3 undecodable image, 1 missing image" in caplog.text
    assert "row 3" in caplog.text and "text.png" in caplog.text


def test_a_missing_column_names_those_that_are_there(folder):
    with pytest.raises(ValueError, match=r"no caption column: .* image, words; one of"):
        sources.load(write_csv(folder, "image,words\nimages/a.png,x\n"))


def test_a_csv_without_a_usable_row_is_refused(folder):
    with pytest.raises(ValueError, match="none of its 1 rows has a readable image"):
        sources.load(write_csv(folder, "image,caption\nno.png,x\n"))


@pytest.mark.parametrize("source", ["glyphs", "csv:", "tfds:glyphs", "zip:x:y"])
def test_another_syntax_is_refused(source):
    with pytest.raises(ValueError, match="is neither tfds:"):
        sources.load(source)


def test_an_unknown_data_set_or_split_is_named(tmp_path):
    with pytest.raises(ValueError, match="no TFDS data set 'nothing_here'"):
        sources.load("tfds:nothing_here:train", tmp_path)
    with pytest.raises(ValueError, match="no split 'test'; it has train, validation"):
        sources.load("tfds:glyphs/tiny:test", tmp_path)
