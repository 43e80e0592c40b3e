import types

import pytest

from basic_tf.evaluation import kept_results


class Missing:
    """An evaluation without data, of which nothing may run."""

    name = "missing"

    def identity(self, *_):
        return {}

    def require_data(self):
        raise ValueError("missing: no data")


class Present(Missing):
    name = "present"

    def require_data(self):
        pass


def test_missing_data_are_said_before_anything_is_evaluated(tmp_path):
    model = types.SimpleNamespace(variables=[])
    run = types.SimpleNamespace(model=model, image_size=8)
    embedder = types.SimpleNamespace(run=run)
    # `Present` has no `run`: to call it would be an AttributeError.
    with pytest.raises(ValueError, match="missing: no data"):
        kept_results.evaluate([Present(), Missing()], embedder, tmp_path, {}, print)
    assert not list(tmp_path.iterdir())
