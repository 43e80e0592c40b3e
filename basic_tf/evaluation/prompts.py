"""Class names and templates to texts: the prompts of zero-shot classification."""

import json
import pathlib

import tensorflow as tf

SLOT = "{}"


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
    """Refuses an empty list, and a template without exactly one slot `{}`.

    Raises:
        ValueError: naming the template.
    """
    if not templates:
        raise ValueError(
            "no template; at least one such as 'a picture of a {}' is needed"
        )
    for template in templates:
        if template.count(SLOT) != 1:
            raise ValueError(f"template {template!r} needs exactly one slot {SLOT}")


def fill(template, class_names):
    """Inserts class names literally, braces and percent signs included.

    Args:
        template: text with one slot `{}`.
        class_names: strings `[C]`.

    Returns:
        String tensor `[C]`.
    """
    before, after = template.split(SLOT)
    return tf.strings.join([before, class_names, after])
