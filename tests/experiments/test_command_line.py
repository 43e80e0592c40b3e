import pathlib
import sys

import pytest
import tensorflow as tf
from absl.testing import flagsaver
from ml_collections import config_flags

from experiments import command_line

CONFIGS = pathlib.Path(command_line.__file__).parent / "configs"


def start(monkeypatch, main, *arguments):
    """Runs a program that has the flag --config, and leaves no flag behind."""
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    with flagsaver.flagsaver():
        config_flags.DEFINE_config_file("config")
        command_line.run(main)


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a program: `(exit status, lines of stderr)`."""

    def run_program(main, *arguments):
        with pytest.raises(SystemExit) as stop:
            start(monkeypatch, main, *arguments)
        return stop.value.code, capsys.readouterr().err.splitlines()

    return run_program


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([f"--config={CONFIGS}/glyphs.py:typo"], "use one of nano, scratch"),
        ([f"--config={CONFIGS}/repeat.py:none"], "there is no none/config.json"),
        ([f"--config={CONFIGS}/glyphs.py", "--config.sed=1"], 'Did you mean "seed"'),
        ([f"--config={CONFIGS}/glyphs.py", "--config.seed=a"], "config.seed=a"),
        (["--config=nowhere.py", "--config.seed=1"], "nowhere.py"),
        (["--confg=a"], "Did you mean: config"),
    ],
)
def test_a_mistake_in_the_flags_is_one_line(run, arguments, message):
    status, lines = run(lambda arguments: None, *arguments)
    assert status == 1
    (line,) = lines
    assert line.startswith("error: ") and message in line


@pytest.mark.parametrize(
    "error",
    [ValueError("a\n  b"), OSError("a b"), tf.errors.NotFoundError(None, None, "a b")],
)
def test_a_mistake_of_the_user_is_one_line(run, error):
    def fail(arguments):
        raise error

    assert run(fail) == (1, ["error: a b"])


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch):
    with pytest.raises(KeyError):
        start(monkeypatch, lambda arguments: {}["missing"])


def test_arguments_that_are_no_flags_are_refused(run):
    status, lines = run(command_line.refuse, "stray")
    assert (status, lines) == (1, ["error: 'stray' is not a flag; see --help"])
