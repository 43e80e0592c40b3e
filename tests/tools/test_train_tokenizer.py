"""The program that trains a tokenizer on captions of a source."""

import json

import pytest
import sentencepiece
from PIL import Image

from tests.imported_run import run_program


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    Image.new("RGB", (4, 4)).save(folder / "a.png")
    rows = [f"a.png,a {c} {n}" for c in ("red", "blue") for n in ("cat", "dog", "owl")]
    (folder / "pairs.csv").write_text("\n".join(["image,caption", *rows]))
    return f"csv:{folder / 'pairs.csv'}"


def test_a_tokenizer_is_written_and_described(source, tmp_path):
    path = tmp_path / "new" / "tokenizer.model"
    process = run_program(
        "tools.train_tokenizer",
        source=source,
        output=path,
        kind="bpe",
        byte_fallback="true",
        vocabulary_size=280,
        captions=5,
        json="true",
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    assert result == {"output": str(path), "captions": 5, "vocabulary_size": 280}
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert processor.get_piece_size() == 280
    assert processor.decode(processor.encode("red 😀")) == "red 😀"


def test_a_vocabulary_that_is_too_large_is_refused_with_the_way_out(source, tmp_path):
    process = run_program(
        "tools.train_tokenizer", source=source, output=tmp_path / "a.model"
    )
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert "error: vocabulary_size 32000: " in process.stderr
    assert "Or give --allow_smaller." in process.stderr
    assert not (tmp_path / "a.model").exists()
