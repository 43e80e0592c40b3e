import pytest

from basic_tf.data import csv_source
from tests.data.source_files import reasons


def write(folder, text, encoding="utf-8"):
    path = folder / "pairs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return str(path)


def load(folder, text, encoding="utf-8", query=""):
    return csv_source.load(write(folder, text, encoding) + query)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_separators_and_encodings_are_found(tmp_path, delimiter, encoding, line_end):
    quoted = f"one{delimiter}{line_end}two"
    rows = [["filepath", "title"], ["a.png", "NA"], [], ["sub/b.png", "größer 🟥"]]
    rows.append(["c.png", f'"{quoted}"'])
    text = line_end.join(delimiter.join(row) for row in rows)
    examples = load(tmp_path, text, encoding)
    assert examples.captions == ["NA", "größer 🟥", quoted]
    paths = [f"{tmp_path}/{name}" for name in ("a.png", "sub/b.png", "c.png")]
    assert examples.images.paths == paths
    assert examples.keys[1] == f"{tmp_path}/pairs.csv line 4"


def test_what_is_not_utf_8_is_read_as_windows_writes_it(tmp_path, caplog):
    examples = load(tmp_path, "image,caption\na.png,café – crème\n", "cp1252")
    assert examples.captions == ["café – crème"]
    assert "pairs.csv is not in UTF-8: it is read as Windows' code page" in caplog.text


def test_what_is_in_no_encoding_is_refused(tmp_path):
    with pytest.raises(ValueError, match="neither in UTF-8 nor in Windows' code page"):
        load(tmp_path, b"image,caption\na.png,\x81\x8d\n")


def test_a_damaged_row_of_utf_8_is_skipped(tmp_path):
    text = "image,caption\na.png,café\nb.png,naïve\n".encode()
    examples = load(tmp_path, text.replace("naïve".encode(), b"na\xffve"))
    assert examples.captions == ["café"]
    assert reasons(examples) == [("pairs.csv", "line 3", "row that is not UTF-8")]


def test_an_empty_caption_is_a_string(tmp_path):
    assert load(tmp_path, "image,caption\na.png,\nb.png,NA\n").captions == ["", "NA"]


@pytest.mark.parametrize(
    "caption",
    ["nul \0 here", "🟥👩‍🚀", "word " * 500, "word " * 40_000, '"a, b;\n""c"""'],
)
def test_captions_are_read_as_they_are(tmp_path, caption):
    quoted = caption if caption.startswith('"') else f'"{caption}"'
    expected = caption[1:-1].replace('""', '"') if caption[0] == '"' else caption
    text = f"image,caption\na.png,{quoted}\nb.png,x\n"
    assert load(tmp_path, text).captions == [expected, "x"]


def test_the_usual_name_wins_whatever_the_order_of_columns(tmp_path):
    text = "title,Caption,image\nwrong,right,a.png\n"
    assert load(tmp_path, text).captions == ["right"]


def test_columns_may_be_given_and_captions_several(tmp_path):
    text = "pic,one,two words\na.png,1,2\nb.png,3,4\n"
    query = "?image=pic&caption=one&caption=two+words"
    examples = load(tmp_path, text, query=query)
    assert examples.captions == ["1", "2", "3", "4"]
    assert examples.caption_counts.tolist() == [2, 2]


def test_labels_are_captions_where_there_are_no_others(tmp_path):
    examples = load(tmp_path, "file,class\na.png,dog\nb.png,cat\nc.png,dog\n")
    assert examples.captions == ["dog", "cat", "dog"]
    assert examples.label_names == ["cat", "dog"]
    assert examples.label_sets == [[1], [0], [1]]
    assert examples.labels == [1, 0, 1]


def test_a_path_may_be_whole_or_an_address(tmp_path):
    examples = load(tmp_path, "image,caption\n/x/a.png,1\ngs://x/b.png,2\n")
    assert examples.images.paths == ["/x/a.png", "gs://x/b.png"]


def test_bad_rows_are_skipped_by_their_line(tmp_path):
    rows = ["a.png,a cat, asleep", "b.png", ",x", "c.png,x", ","]
    examples = load(tmp_path, "\n".join(["image,caption", *rows]))
    assert examples.captions == ["x"]
    assert reasons(examples) == [
        (
            "pairs.csv",
            "line 2",
            "row of more cells than columns (a comma outside quotes?)",
        ),
        ("pairs.csv", "line 3", "row of fewer cells than columns"),
        ("pairs.csv", "line 4", "row without an image"),
    ]


def test_a_missing_column_names_those_that_are_there_and_the_separator(tmp_path):
    message = r"no caption column: split at ';' its columns are image, words; one of"
    with pytest.raises(ValueError, match=message):
        load(tmp_path, "image;words\na.png;x\n")
    with pytest.raises(ValueError, match="has no column 'alt': split at ','"):
        load(tmp_path, "image,words\na.png,x\n", query="?caption=alt")


@pytest.mark.parametrize("query", ["?picture=a", "?image"])
def test_an_unknown_option_is_refused(tmp_path, query):
    with pytest.raises(ValueError, match=r"after \? stand image|bad query field"):
        load(tmp_path, "image,words\na.png,x\n", query=query)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'image,caption\na.png,"a cat\nb.png,x\n',
            r"pairs\.csv line 3: unexpected end",
        ),
        ("image,caption\n", r"pairs\.csv holds no usable example$"),
        ("", "split at ',' its columns are none"),
        ("image,caption\na.png\n", "no usable example: 1 row of fewer cells"),
    ],
)
def test_a_table_without_a_usable_row_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, text)


def test_a_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.csv"):
        csv_source.load(str(tmp_path / "gone.csv"))
