import logging

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from basic_tf.data import mixture, sources, tokenizer
from basic_tf.models import zoo
from basic_tf.training import loaded_run, loop, phases
from tests.training.interrupted_run import assert_same_end, train_until


def make(config, examples):
    return phases.make_phase("first", config, None, examples, None, 32, 0)


def test_what_an_epoch_leaves_over_is_said(caplog):
    caplog.set_level(logging.INFO, "absl")
    phases._announce_batches("joint", [(20, 0.5), (9, 0.5)], 8)
    assert [record.message for record in caplog.records] == [
        "phase joint: 20 examples, 4 of them in each of 5 batches; 0 others, drawn "
        "anew, wait for the next epoch",
        "phase joint: 9 examples, 4 of them in each of 2 batches; 1 others, drawn "
        "anew, wait for the next epoch",
    ]


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
    config.phases.text.augmentation = {"affine": {"max_shift": 0.1}}
    model = zoo.build(config.model.to_dict(), 20)
    examples = sources.Examples([b""] * 16, [""] * 16)
    with pytest.raises(ValueError, match="frozen, as it embeds every image once"):
        phases.make_phase("text", config.phases.text, model, examples, None, 32, 0)


def test_a_warm_up_longer_than_the_phase_is_refused(tmp_path):
    config = tiny_run.tiny_config(tmp_path).phases.joint
    config.warmup_steps = 6
    with pytest.raises(ValueError, match="phase first: warmup_steps 6 must be at"):
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


def test_a_supervised_phase_takes_the_labelled_part_of_a_mixture(tmp_path):
    config = tiny_run.tiny_config(tmp_path)
    config.phases.pretrain.label_balance = 0.0
    image = tf.io.encode_png(tf.zeros([32, 32, 3], tf.uint8)).numpy()
    pairs = sources.Examples([b"not an image"] * 40, ["x"] * 40)
    labelled = sources.Examples(
        [image] * 20,
        ["dog and cat"] * 20,
        labels=[0] * 20,
        label_sets=[[0, 1]] * 20,
        label_names=["dog", "cat"],
    )
    examples = mixture.mix([pairs, labelled], [0.9, 0.1])
    model = zoo.build(config.model.to_dict(), 20)
    phase = phases.make_phase(
        "pretrain", config.phases.pretrain, model, examples, None, 32, 0
    )
    (batch,) = phase.make_batches(0, 1)
    np.testing.assert_array_equal(batch["labels"], np.ones((16, 2)))


def test_a_contrastive_phase_draws_one_of_several_captions(tmp_path):
    config = tiny_run.tiny_config(tmp_path)
    image = tf.io.encode_png(tf.zeros([32, 32, 3], tf.uint8)).numpy()
    texts = ["a red square", "A Red square", "a blue circle"]
    examples = sources.Examples(
        [image] * 16, texts * 16, caption_counts=np.array([3] * 16)
    )
    pieces = tokenizer.Tokenizer(tokenizer.train(texts * 3, 40), 16)
    model = zoo.build(config.model.to_dict(), pieces.vocabulary_size)
    joint = config.phases.joint
    phase = phases.make_phase("joint", joint, model, examples, pieces, 32, 0)
    (batch,) = phase.make_batches(0, 1)
    rows, ids = batch["token_ids"].numpy(), batch["caption_ids"].numpy()
    assert {tuple(row) for row in rows} == {tuple(row) for row in pieces(texts).numpy()}
    # Captions of the same tokens are the same caption.
    same_rows = (rows[:, None] == rows).all(-1)
    np.testing.assert_array_equal(ids[:, None] == ids, same_rows)
    assert set(ids) == {0, 1}


def simclr_config(tmp_path, **fields):
    config = tiny_run.tiny_config(tmp_path)
    config.phase_order = ("simclr",)
    config.phases = {"simclr": tiny_run.simclr_phase(**fields)}
    return config


def test_a_simclr_phase_moves_the_image_encoder_alone_and_resumes(
    tmp_path, monkeypatch
):
    config = simclr_config(tmp_path / "data")
    loop.train(config, tmp_path / "whole")
    train_until(monkeypatch, config, tmp_path / "run", 3)
    loop.train(config, tmp_path / "run")
    assert_same_end(tmp_path / "run", tmp_path / "whole")
    keras.utils.set_random_seed(config.seed)
    run = loaded_run.load(tmp_path / "whole")
    keras.utils.set_random_seed(config.seed)
    fresh = zoo.build(config.model.to_dict(), run.tokenizer.vocabulary_size)
    for part, moves in (("image_encoder", True), ("text_encoder", False)):
        pairs = zip(
            getattr(run.model, part).trainable_variables,
            getattr(fresh, part).trainable_variables,
            strict=True,
        )
        moved = [(a.numpy() != b.numpy()).any() for a, b in pairs]
        assert any(moved) == moves


def test_simclr_takes_views_of_its_own_and_a_temperature(tmp_path):
    model = zoo.build(tiny_run.tiny_config(tmp_path).model.to_dict(), 20)
    examples = sources.Examples([b""] * 16, [""] * 16)
    for fields, message in (
        ({"augmentation": {"affine": {}}}, "must be empty for kind simclr"),
        ({"temperature": 0.0}, "temperature 0.0 must be more than 0"),
        ({"strength": 3.0}, "strength 3.0 must be between 0 and 2.5"),
        ({"online_probe": True}, "online_probe needs labelled examples"),
    ):
        config = simclr_config(tmp_path, **fields).phases.simclr
        with pytest.raises(ValueError, match=f"phase simclr: .*{message}"):
            phases.check_phase("simclr", config, model, examples)
