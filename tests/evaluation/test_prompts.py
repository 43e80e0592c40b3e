import hashlib
import json
import pathlib

import pytest

from basic_tf.evaluation import prompts


@pytest.mark.parametrize("slot", prompts.SLOTS)
@pytest.mark.parametrize("name", ["a, b", "{x}", "100%", "naïve 猫", "{}", "{c}", ""])
def test_a_class_name_is_inserted_literally(name, slot):
    (prompt,) = prompts.fill("a " + slot + " icon, 5 % {x}", [name]).numpy()
    assert prompt.decode() == "a " + name + " icon, 5 % {x}"


@pytest.mark.parametrize(
    "template", ["no slot", "{} and {}", "", "{c} and {c}", "{c} and {}", "{ } {d}"]
)
def test_a_template_needs_exactly_one_slot(template):
    with pytest.raises(ValueError, match=r"needs exactly one slot \{\} or \{c\}"):
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


def test_the_fingerprint_is_the_hash_of_the_texts_as_json():
    expected = hashlib.sha256(b'["a {}", "caf\\u00e9"]').hexdigest()
    assert prompts.fingerprint(["a {}", "café"]) == expected
    lists = [[], ["ab"], ["a", "b"], ["b", "a"], ["a,b"], ["a", "b", ""]]
    assert len({prompts.fingerprint(texts) for texts in lists}) == len(lists)
