import pytest
import tiny_run

from basic_tf.data import sources
from basic_tf.models import zoo
from basic_tf.training import phases


def make(config, examples):
    return phases.make_phase("first", config, None, examples, None, 32, 0)


def test_an_unknown_kind_names_the_known_ones(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.pretrain
    config.kind = "contrast"
    with pytest.raises(
        ValueError,
        match="phase first: kind 'contrast' is none of supervised, contrastive",
    ):
        make(config, sources.Examples([b""], [""]))


def test_a_supervised_phase_without_labels_is_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.pretrain
    with pytest.raises(ValueError, match="needs labelled examples"):
        make(config, sources.Examples([b""] * 16, [""] * 16))


def test_a_batch_larger_than_the_data_is_refused_before_anything_else(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.joint
    with pytest.raises(ValueError, match="batch_size 16 is more than the 1 examples"):
        make(config, sources.Examples([b""], [""]))


def test_augmentation_of_images_that_are_embedded_once_is_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path)
    config.phases.text.augmentation = {"max_shift": 0.1}
    model = zoo.build(config.model.to_dict(), 20)
    examples = sources.Examples([b""] * 16, [""] * 16)
    with pytest.raises(ValueError, match="frozen, as it embeds every image once"):
        phases.make_phase("text", config.phases.text, model, examples, None, 32, 0)


def test_a_warm_up_longer_than_the_phase_is_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.joint
    config.warmup_steps = 6
    with pytest.raises(ValueError, match="phase first: warmup_steps 6 must be less"):
        make(config, sources.Examples([b""] * 16, [""] * 16))


def test_slots_that_would_skip_steps_are_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.joint
    config.accumulate, config.max_non_finite_steps = "slots", 3
    with pytest.raises(ValueError, match="max_non_finite_steps 3 must be 0 with accum"):
        make(config, sources.Examples([b""] * 16, [""] * 16))


def test_microbatches_that_do_not_divide_the_batch_are_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.joint
    config.microbatch_text = 5
    with pytest.raises(
        ValueError,
        match="phase first: microbatch_text 5 does not divide batch size 16; use one",
    ):
        make(config, sources.Examples([b""] * 16, [""] * 16))


def test_slots_in_a_supervised_phase_are_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.pretrain
    config.accumulate = "slots"
    with pytest.raises(ValueError, match="accumulate slots is for contrastive phases"):
        make(config, sources.Examples([b""] * 16, [""] * 16))
