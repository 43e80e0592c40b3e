"""The examples in docstrings run and give what they say."""

import doctest
import importlib
import pathlib

import pytest

import basic_tf

FOLDER = pathlib.Path(basic_tf.__file__).parent
MODULES = [
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in sorted(FOLDER.rglob("*.py"))
    if ">>> " in path.read_text()
]


def test_there_are_examples():
    assert len(MODULES) >= 7


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_they_say(module):
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.attempted and not outcome.failed
