import json

from tests import child_processes
from tests.data.source_files import cut_jpeg, picture, write_tar


def inspect(*arguments):
    return child_processes.run(["-m", "tools.inspect_data", *arguments])


def test_a_source_is_counted_and_drawn(tmp_path):
    texts = ["a red square", "A square & <b>", "", "red"]
    members = {}
    for number, text in enumerate(texts):
        members |= {f"{number}.png": picture("red"), f"{number}.txt": text}
    members |= {"4.jpg": cut_jpeg(), "4.txt": "cut", "5.jpg": picture(form="JPEG")}
    write_tar(tmp_path / "0.tar", members)
    source, sheet = f"webdataset:{tmp_path}/0.tar", tmp_path / "sheets/0.html"
    listed = tmp_path / "bad.jsonl"
    process = inspect(source, "--json", "--output", sheet, "--bad_examples", listed)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert found == {
        "source": source,
        "examples": 4,
        "captions": 4,
        "distinct_captions": 4,
        "empty_captions": 1,
        "classes": 0,
        "broken": {"example without a caption": 1, "undecodable image": 1},
        "words_a_caption": {"0": 1, "1": 1, "3-4": 2},
        "shorter_side": {"1-31": 4},
        "median_height_and_width": [4.0, 4.0],
        "common_words": {"a": 2, "red": 2, "square": 2, "b": 1},
        "common_labels": {},
    }
    page = sheet.read_text()
    assert page.count("data:image/png;base64,") == 4
    assert "A square &amp; &lt;b&gt;" in page
    assert [json.loads(line)["key"] for line in listed.read_text().splitlines()] == [
        "5",
        "4",
    ]


def test_what_cannot_be_inspected_is_said_in_a_line(tmp_path):
    process = inspect()
    assert process.returncode == 1
    assert "error: name one source, such as csv:pairs.csv" in process.stderr
    (tmp_path / "pairs.csv").write_text("image,caption\ngone.png,x\n")
    process = inspect(f"csv:{tmp_path}/pairs.csv")
    assert process.returncode == 1
    assert f"pairs.csv: 1 missing image ({tmp_path}/gone.png, " in process.stderr
    assert "Traceback" not in process.stderr
