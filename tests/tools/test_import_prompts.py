"""The program, beside distributions whose import would end it."""

import json

import pytest
from absl import flags
from absl.testing import flagsaver

from basic_tf.evaluation import prompt_sets
from tests import fake_distributions as fakes
from tools import import_prompts


@pytest.fixture
def run(tmp_path):
    """A function that calls the program with flags, which writes to `prompts`."""

    def call(**values):
        given = {name: str(value) for name, value in values.items()}
        with flagsaver.as_parsed(output=str(tmp_path / "prompts"), **given):
            import_prompts.main([])

    flags.FLAGS.mark_as_parsed()
    yield call
    flags.FLAGS.unparse_flags()


def test_distributions_and_files_of_ones_own_are_collected(
    run, tmp_path, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(tmp_path / "installed")
    fakes.write_clip_benchmark(tmp_path / "installed")
    fakes.write_open_clip(tmp_path / "installed")
    (tmp_path / "names.json").write_text('{"pets": ["cat", "dog"]}')
    (tmp_path / "templates.json").write_text('{"cifar10": ["a {}"]}')
    run(
        distribution="clip-benchmark",
        class_names=tmp_path / "names.json",
        templates=tmp_path / "templates.json",
    )
    assert "cifar10: 1 templates, 2 names\n" in capsys.readouterr().out
    run(distribution="open_clip_torch", json="true")
    counts = json.loads(capsys.readouterr().out)
    assert counts["imagenet1k"] == {"templates": 2, "class_names": 4}
    assert counts["pets"] == {"templates": 0, "class_names": 2}
    sets = prompt_sets.read(tmp_path / "prompts")
    assert sets.templates["cifar10"] == ["a {}"]
    assert sets.class_names["cifar10"] == fakes.CLASS_NAMES["cifar10"]


def test_what_is_missing_is_named(run, tmp_path):
    with pytest.raises(ValueError, match="give --distribution, --templates or --class"):
        run()
    with pytest.raises(ValueError, match="clip-benchmark is not installed"):
        run(distribution="clip-benchmark")
    assert not (tmp_path / "prompts").exists()
