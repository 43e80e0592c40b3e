import json

import pytest

from basic_tf.evaluation import prompt_sets

AWKWARD = ["a, b", "{x}", "{}", "100%", "naïve 猫", '"quoted"', "back\\slash"]


def test_what_is_written_is_read_again(tmp_path):
    sets = prompt_sets.PromptSets({"pets": ["a {c}.", "{}"]}, {"pets": AWKWARD})
    prompt_sets.write(tmp_path / "new", sets)
    assert prompt_sets.read(tmp_path / "new") == sets


def test_a_second_import_adds_tasks_and_replaces_those_of_its_name(tmp_path):
    prompt_sets.write(
        tmp_path, prompt_sets.PromptSets({"a": ["{}"]}, {"a": ["x"], "b": ["y"]})
    )
    prompt_sets.write(tmp_path, prompt_sets.PromptSets({"c": ["{c}"]}, {"b": ["z"]}))
    both = prompt_sets.read(tmp_path)
    assert both.templates == {"a": ["{}"], "c": ["{c}"]}
    assert both.class_names == {"a": ["x"], "b": ["z"]}


def test_one_file_is_enough_and_none_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither templates\.json nor class_"):
        prompt_sets.read(tmp_path)
    (tmp_path / "class_names.json").write_text('{"a": ["x"]}')
    assert prompt_sets.read(tmp_path) == prompt_sets.PromptSets({}, {"a": ["x"]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", r"templates\.json is not JSON"),
        ("[]", "is not an object of a list of texts for each task"),
        ({"pets": "a {}"}, "pets: not a list of texts"),
        ({"pets": []}, "pets: not a list of texts"),
        ({"pets": ["{}", 3]}, "pets: not a list of texts"),
        ({"pets": ["{}", "no slot"]}, "pets: template 'no slot' needs exactly one"),
    ],
)
def test_another_form_is_refused(tmp_path, content, message):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "templates.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        prompt_sets.read(tmp_path)
