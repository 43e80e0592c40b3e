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
    rows = [["filepath", "title"], ["images/a.png", "NA"], [], ["images/b.png", "x"]]
    text = "\n".join(delimiter.join(row) for row in rows)
    examples = sources.load(write_csv(folder, text, encoding))
    assert examples.captions == ["NA", "x"]
    assert examples.images == [str(folder / f"images/{n}.png") for n in "ab"]


def test_the_usual_name_wins_whatever_the_order_of_columns(folder):
    text = "title,Caption,image\nwrong,right,images/a.png\n"
    assert sources.load(write_csv(folder, text)).captions == ["right"]


def test_what_is_not_utf_8_is_refused_by_name(folder):
    source = write_csv(folder, "image,caption\nimages/a.png,caf\u00e9\n", "latin-1")
    with pytest.raises(ValueError, match=r"pairs\.csv is not a table in UTF-8"):
        sources.load(source)


def test_quoted_commas_and_newlines_belong_to_the_caption(folder):
    text = 'image,caption\nimages/a.png,"red, and\nsquare 🟥"\n'
    assert sources.load(write_csv(folder, text)).captions == ["red, and\nsquare 🟥"]


def write_bad_images(folder):
    (folder / "text.png").write_text("not an image")
    (folder / "empty.png").touch()
    whole = (folder / "images/a.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    return ["text.png", "gone.png", "empty.png", "cut.png"]


def test_bad_rows_are_dropped_counted_and_named(folder, caplog):
    good = ["images/a.png", "images/b.png"] * 3
    rows = [f"{name},x" for name in [good[0], *write_bad_images(folder), *good[1:]]]
    text = "\n".join(["image,caption", *rows, "images/a.png,"])
    examples = sources.load(write_csv(folder, text))
    assert examples.images == [str(folder / name) for name in good]
    counts = "3 undecodable image, 1 missing image, 1 empty caption"
    assert f"dropped of 11 rows: {counts}" in caplog.text
    assert "line 3" in caplog.text and "text.png" in caplog.text


def test_a_csv_that_is_mostly_bad_is_refused_with_the_counts(folder):
    rows = [f"{name},x\n" for name in ["images/a.png", *write_bad_images(folder)]]
    with pytest.raises(ValueError, match="only 1 of 5 rows can be used: 3 undecod"):
        sources.load(write_csv(folder, "image,caption\n" + "".join(rows)))


def test_a_missing_column_names_those_that_are_there(folder):
    with pytest.raises(ValueError, match=r"no caption column: .* image, words; one of"):
        sources.load(write_csv(folder, "image,words\nimages/a.png,x\n"))


def test_a_csv_without_a_usable_row_is_refused(folder):
    with pytest.raises(
        ValueError, match="only 0 of 1 rows can be used: 1 missing image"
    ):
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


def test_a_split_may_be_sliced(tmp_path):
    whole = sources.load("tfds:glyphs/tiny:serif", tmp_path)
    part = sources.load("tfds:glyphs/tiny:serif[:25%]", tmp_path)
    assert part.captions == whole.captions[: len(whole) // 4]
    with pytest.raises(ValueError, match=r"no split 'serif\[oops\]'; it has"):
        sources.load("tfds:glyphs/tiny:serif[oops]", tmp_path)


def test_a_row_with_a_comma_outside_quotes_is_dropped_by_its_line(folder, caplog):
    text = "image,caption\nimages/a.png,a cat, asleep\nimages/b.png,x\n"
    assert sources.load(write_csv(folder, text)).captions == ["x"]
    assert "line 2" in caplog.text and "more cells than columns" in caplog.text


def test_a_quote_without_end_is_refused_by_its_line(folder):
    text = 'image,caption\nimages/a.png,"a cat\nimages/b.png,x\n'
    with pytest.raises(ValueError, match=r"pairs\.csv line 3: unexpected end of data"):
        sources.load(write_csv(folder, text))


def test_a_very_long_caption_is_read(folder):
    text = f"image,caption\nimages/a.png,{'word ' * 40_000}\n"
    assert len(sources.load(write_csv(folder, text)).captions[0]) == 200_000
