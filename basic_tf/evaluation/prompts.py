"""Class names and templates to texts: the prompts of zero-shot classification."""

import hashlib
import json
import pathlib

import tensorflow as tf

SLOTS = ("{}", "{c}")  # the second as CLIP_benchmark writes it


def load_templates(name):
    """Templates of a set in `templates.json`.

    Raises:
        ValueError: for another name, naming the known sets, or for a set with a
            template without exactly one slot.
    """
    path = pathlib.Path(__file__).with_name("templates.json")
    sets = json.loads(path.read_text())
    if name not in sets:
        raise ValueError(f"no templates {name!r}; known: {', '.join(sets)}")
    check_templates(sets[name])
    return sets[name]


def check_templates(templates):
    """Refuses an empty list, and a template without exactly one slot, `{}` or `{c}`.

    Raises:
        ValueError: naming the template.
    """
    if not templates:
        raise ValueError(
            "no template; at least one such as 'a picture of a {}' is needed"
        )
    for template in templates:
        if sum(template.count(slot) for slot in SLOTS) != 1:
            raise ValueError(
                f"template {template!r} needs exactly one slot {' or '.join(SLOTS)}"
            )


def fill(template, class_names):
    """Inserts class names literally, braces and percent signs included.

    Args:
        template: text with one slot.
        class_names: strings `[C]`.

    Returns:
        String tensor `[C]`.
    """
    (slot,) = (slot for slot in SLOTS if slot in template)
    before, after = template.split(slot)
    return tf.strings.join([before, class_names, after])


def fingerprint(texts):
    """SHA-256 of a list of texts, as 64 hexadecimal digits: other texts, other digits.

    Of their JSON, so that `["ab"]` and `["a", "b"]` differ.
    """
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()
