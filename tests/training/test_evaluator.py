import types

import pytest
from ml_collections import ConfigDict

from basic_tf.training import evaluator


def make(every_steps):
    config = {
        "evaluation": {"tasks": (), "every_steps": every_steps},
        "data": {"data_dir": ""},
        "model": {"image_encoder": {"image_size": 8}},
    }
    model = types.SimpleNamespace(encode_image=None, encode_text=None)
    return evaluator.Evaluator(ConfigDict(config), model, None)


def test_it_is_due_after_so_many_steps_of_the_run():
    every_three = make(3)
    assert [step for step in range(1, 10) if every_three.is_due(step)] == [3, 6, 9]


def test_zero_is_for_never_and_less_is_refused():
    never = make(0)
    assert not any(never.is_due(step) for step in range(1, 10))
    with pytest.raises(ValueError, match="every_steps is -1; 0 is for never"):
        make(-1)
