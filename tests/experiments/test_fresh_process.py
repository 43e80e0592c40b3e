import sys
import types

import pytest

from experiments.studies import fresh_process


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Makes the running study one of this source."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    module = types.SimpleNamespace(__spec__=types.SimpleNamespace(name="made_up"))
    monkeypatch.setitem(sys.modules, "__main__", module)
    return (tmp_path / "made_up.py").write_text


def test_what_a_process_prints_last_is_added_to_the_row(study):
    study("print('loading'); print('{\"seconds\": 2.5}')")
    expected = {"size": 3, "seconds": 2.5}
    assert fresh_process.measure({"size": 3}) == expected


def test_a_process_gets_its_row(study):
    study("import sys; print(sys.argv[2])")
    assert fresh_process.measure({"size": 3, "b": None}) == {"size": 3, "b": None}


def test_a_process_that_fails_is_told_with_its_row_and_its_last_words(study):
    study("raise SystemExit('no memory left')")
    with pytest.raises(ChildProcessError, match=r"{'size': 3}: no memory left"):
        fresh_process.measure({"size": 3})
