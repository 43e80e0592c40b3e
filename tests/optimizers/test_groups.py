"""Every variable matches one rule, or the message names it."""

import collections
import re

import pytest

from basic_tf.optimizers import groups

Variable = collections.namedtuple("Variable", "path")

VARIABLES = [
    Variable("image_encoder/stage0/kernel"),
    Variable("text_encoder/norm/gamma"),
    Variable("image_encoder/stage0/bias"),
    Variable("log_scale"),
]
RULES = (("kernel$", 1.0), ("(bias|gamma|log_scale)$", 0.0))


def test_values_come_in_the_order_of_the_variables():
    assert groups.match_rules(VARIABLES, RULES) == [1.0, 0.0, 0.0, 0.0]


def test_values_may_be_anything():
    rules = (("image", None), ("text|scale", {"trains": False}))
    values = groups.match_rules(VARIABLES, rules)
    assert values == [None, {"trains": False}, None, {"trains": False}]


def test_variables_without_a_pattern_are_named():
    message = (
        "every variable must match exactly one of kernel$; 3 do not: "
        "text_encoder/norm/gamma (0 patterns), image_encoder/stage0/bias (0 patterns), "
        "log_scale (0 patterns)"
    )
    with pytest.raises(ValueError, match=re.escape(message) + "$"):
        groups.match_rules(VARIABLES, RULES[:1])


def test_variables_with_several_patterns_are_named():
    message = "one of kernel$, (bias|gamma|log_scale)$, image; 2 do not: "
    message += "image_encoder/stage0/kernel (2 patterns), image_encoder/stage0/bias (2"
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        groups.match_rules(VARIABLES, (*RULES, ("image", 0.5)))
    assert "log_scale (" not in str(error.value)


def test_a_pattern_that_is_no_regular_expression_is_named():
    with pytest.raises(ValueError, match=r"'\(a' is no pattern: missing \)"):
        groups.match_rules(VARIABLES, (("(a", 1.0),))
