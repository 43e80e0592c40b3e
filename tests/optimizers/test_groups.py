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
RULES = (("kernel$", {"decay": 0.5}), ("(bias|gamma|log_scale)$", {"train": False}))


def test_rules_come_in_the_order_of_the_variables():
    frozen = groups.Rule(train=False)
    expected = [groups.Rule(decay=0.5), frozen, frozen, frozen]
    assert groups.match_rules(VARIABLES, RULES) == expected


def test_the_rule_for_all_trains_and_decays_as_the_optimizer_says():
    rules = groups.match_rules(VARIABLES, groups.ONE_RULE)
    assert rules == [groups.Rule(train=True, decay=1.0, learning_rate=1.0)] * 4


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
        groups.match_rules(VARIABLES, (*RULES, ("image", {})))
    assert "log_scale (" not in str(error.value)


def test_a_pattern_that_is_no_regular_expression_is_named():
    with pytest.raises(ValueError, match=r"'\(a' is no pattern: missing \)"):
        groups.match_rules(VARIABLES, (("(a", {}),))


def test_an_unknown_field_names_the_known_ones():
    message = "the rule of 'a' has 'lr'; known: train, decay, learning_rate"
    with pytest.raises(ValueError, match=message):
        groups.match_rules(VARIABLES, (("a", {"lr": 0.1}),))


@pytest.mark.parametrize("value", ["0.1", None, -0.1, float("nan"), float("inf")])
def test_what_is_no_factor_is_refused(value):
    message = f"decay of 'a' is {re.escape(repr(value))}; use 0 or more"
    with pytest.raises(ValueError, match=message):
        groups.match_rules(VARIABLES, (("a", {"decay": value}),))


def test_frozen_images_leave_the_texts_and_the_log_scale():
    paths = "dual_encoder/image_encoder/kernel", "dual_encoder/text_encoder/kernel"
    variables = [Variable(path) for path in (*paths, "dual_encoder/log_scale")]
    rules = groups.match_rules(variables, groups.FROZEN_IMAGES)
    assert [rule.train for rule in rules] == [False, True, True]
