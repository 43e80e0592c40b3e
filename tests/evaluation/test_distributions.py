"""Distributions whose import would end the process are read all the same."""

import pytest

from basic_tf.evaluation import distributions
from tests import fake_distributions as fakes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_clip_benchmarks_files_are_read(folder):
    fakes.write_clip_benchmark(folder)
    sets = distributions.read_clip_benchmark()
    assert sets.templates == fakes.TEMPLATES
    assert sets.class_names == fakes.CLASS_NAMES


def test_a_language_may_have_names_alone_and_an_unknown_one_is_named(folder):
    fakes.write_clip_benchmark(folder)
    sets = distributions.read_clip_benchmark("jp")
    assert (sets.templates, sets.class_names) == ({}, {"cifar10": ["飛行機", "猫"]})
    with pytest.raises(ValueError, match="no prompts in 'tlh'; it has en, jp"):
        distributions.read_clip_benchmark("tlh")


def test_open_clips_literals_are_parsed(folder):
    fakes.write_open_clip(folder)
    sets = distributions.read_open_clip()
    assert sets.templates["imagenet1k"] == [
        "a bad photo of a {c}.",
        "{braces} around the {c}!",
    ]
    assert sets.class_names["imagenet1k"] == [
        "tench",
        "kite (bird of prey)",
        "baluster / handrail",
        "Geoffroy's spider monkey",
    ]


NAMES = "IMAGENET_CLASSNAMES = ['a']\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (NAMES, "'OPENAI_IMAGENET_TEMPLATES'"),
        (NAMES + "OPENAI_IMAGENET_TEMPLATES = load()", "'Call' object has no"),
        (NAMES + "OPENAI_IMAGENET_TEMPLATES = (print,)", "line 2 is no template"),
        (
            NAMES + "OPENAI_IMAGENET_TEMPLATES = (lambda c: f'{open(c)}',)",
            "line 2 inserts more than a class name",
        ),
        (
            NAMES + "OPENAI_IMAGENET_TEMPLATES = (lambda c: f'{c} {c}',)",
            "needs exactly one slot",
        ),
        (
            "OPENAI_IMAGENET_TEMPLATES = ('{}',)\nIMAGENET_CLASSNAMES = [exit()]",
            "malformed node",
        ),
    ],
    ids=["none", "call", "function", "expression", "two slots", "names"],
)
def test_code_in_open_clips_file_is_refused_and_not_run(folder, content, message):
    fakes.write_open_clip(folder, content)
    with pytest.raises(ValueError, match="not written as open_clip") as error:
        distributions.read_open_clip()
    assert message in str(error.value)


def test_what_is_not_installed_is_named(folder):
    fakes.write_distribution(folder, "open_clip_torch", "open_clip", {})
    with pytest.raises(ValueError, match=r"has no file zero_shot_metadata\.py"):
        distributions.read_open_clip()
    with pytest.raises(ValueError, match="pip install --no-deps clip-benchmark"):
        distributions.read_clip_benchmark()
