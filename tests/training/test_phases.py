import pytest
import tiny_run

from basic_tf.data import sources
from basic_tf.training import phases


def make(config, examples):
    return phases.make_phase("first", config, None, examples, None, 32, 0)


def test_an_unknown_kind_names_the_known_ones(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.pretrain
    config.kind = "contrast"
    with pytest.raises(ValueError, match="'contrast' is none of supervised, contras"):
        make(config, sources.Examples([b""], [""]))


def test_a_supervised_phase_without_labels_is_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.pretrain
    with pytest.raises(ValueError, match="needs labelled examples"):
        make(config, sources.Examples([b""], [""]))
