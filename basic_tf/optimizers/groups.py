"""Rules by variable path: what is trained, what decays, what learns how fast."""

import dataclasses
import math
import numbers
import re
from collections.abc import Mapping

NUM_NAMED = 8  # variables at most in a message


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a table of rules says of a variable.

    Attributes:
        train: whether it is trained at all.
        decay: factor of the weight decay. Variables of less than two axes (gains,
            biases, the log-scale) never decay.
        learning_rate: factor of the learning rate.
    """

    train: bool = True
    decay: float = 1.0
    learning_rate: float = 1.0


ONE_RULE = ((".", {}),)  # for all variables
FROZEN_IMAGES = (  # of a dual encoder, the text encoder and the log-scale alone
    ("/image_encoder/", {"train": False}),
    ("/text_encoder/|/log_scale$", {}),
)


def match_rules(variables, rules, kind=Rule):
    """The rule of each variable.

    Args:
        variables: Keras variables (anything with a `path`).
        rules: `((pattern, fields), ...)`; a pattern is searched in the path, and
            `fields` are those of `kind` that differ from its defaults.
        kind: dataclass of the rules.

    Returns:
        List of `kind`, in the order of `variables`.

    Raises:
        ValueError: naming the first variables that match no pattern, or several, the
            pattern that is no regular expression, or the field that is none or has an
            impossible value.
    """
    rules = [(pattern, _make_rule(kind, pattern, fields)) for pattern, fields in rules]
    matches = [
        [rule for pattern, rule in rules if re.search(pattern, variable.path)]
        for variable in variables
    ]
    wrong = [
        f"{variable.path} ({len(values)} patterns)"
        for variable, values in zip(variables, matches, strict=True)
        if len(values) != 1
    ]
    if wrong:
        patterns = ", ".join(pattern for pattern, _ in rules)
        raise ValueError(
            f"every variable must match exactly one of {patterns}; "
            f"{len(wrong)} do not: {', '.join(wrong[:NUM_NAMED])}"
            + (", ..." if len(wrong) > NUM_NAMED else "")
        )
    return [values[0] for values in matches]


def _is_factor(value):
    return isinstance(value, numbers.Real) and 0 <= value < math.inf


def _make_rule(kind, pattern, fields):
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    if not isinstance(fields, Mapping):
        raise ValueError(f"the rule of {pattern!r} is {fields!r}; use fields, or {{}}")
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    for name, value in fields.items():
        if name not in types:
            raise ValueError(
                f"the rule of {pattern!r} has {name!r}; known: {', '.join(types)}"
            )
        if types[name] is bool and not isinstance(value, bool):
            raise ValueError(f"{name} of {pattern!r} is {value!r}; use True or False")
        if types[name] is float and not _is_factor(value):
            raise ValueError(f"{name} of {pattern!r} is {value!r}; use 0 or more")
    return kind(**fields)
