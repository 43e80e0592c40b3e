import json
import pathlib

import pytest

from basic_tf.evaluation import prompts


@pytest.mark.parametrize("name", ["a, b", "{x}", "100%", "naïve 猫", "{}"])
def test_a_class_name_is_inserted_literally(name):
    (prompt,) = prompts.fill("a {} icon", [name]).numpy()
    assert prompt.decode() == "a " + name + " icon"


@pytest.mark.parametrize("template", ["no slot", "{} and {}", ""])
def test_a_template_needs_exactly_one_slot(template):
    with pytest.raises(ValueError, match="needs exactly one slot"):
        prompts.check_templates(["a {}", template])


def test_no_template_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        prompts.check_templates([])


def test_every_set_can_be_loaded_and_an_unknown_one_is_refused():
    path = pathlib.Path(prompts.__file__).with_name("templates.json")
    for name, templates in json.loads(path.read_text()).items():
        assert prompts.load_templates(name) == templates
    with pytest.raises(ValueError, match="known: characters, icons"):
        prompts.load_templates("letters")
