"""A run that is killed, and what it comes to when it goes on."""

import numpy as np
import pytest
import tensorflow as tf

from basic_tf.training import checkpoints, loop, run_log


def final_variables(workdir):
    """Everything in the newest checkpoint but the time that was taken."""
    prefix, _ = checkpoints.read(workdir / "checkpoints", ())
    reader = tf.train.load_checkpoint(str(prefix))
    names = reader.get_variable_to_shape_map()
    return {
        name: reader.get_tensor(name)
        for name in names
        if name.endswith("VARIABLE_VALUE") and "seconds" not in name
    }


def train_until(monkeypatch, config, workdir, total_step, mesh=None):
    """Trains and breaks off inside a step, as a killed process would."""
    whole = run_log.StepWatch.on_train_batch_end

    def broken(self, batch, logs=None):
        whole(self, batch, logs)
        if self.log.state.total_step == total_step:
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(run_log.StepWatch, "on_train_batch_end", broken)
        with pytest.raises(RuntimeError, match="killed"):
            loop.train(config, workdir, mesh)


def assert_same_end(ours, theirs):
    """The final checkpoints of two runs are equal, bit for bit."""
    expected, actual = final_variables(theirs), final_variables(ours)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)
