"""What every test starts from: fixed seeds, float32, hypothesis without chance."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import hypothesis
import keras
import pytest
from absl import flags

_define = flags.FlagValues.__setitem__


def _define_anew(flag_values, name, flag):
    """Programs have flags of the same names, and one process imports several."""
    flag.allow_override = True
    _define(flag_values, name, flag)


flags.FlagValues.__setitem__ = _define_anew

pytest.register_assert_rewrite("tests.models.model_test_case")

# A first example that traces or loads something is slow: no deadline.
hypothesis.settings.register_profile(
    "basic_tf", deadline=None, derandomize=True, max_examples=30, database=None
)
hypothesis.settings.load_profile("basic_tf")


@pytest.fixture(autouse=True)
def fixed_global_state():
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
