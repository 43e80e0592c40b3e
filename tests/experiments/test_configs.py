"""The configurations hold what the paper prints, and can be built."""

import pytest

from basic_tf.models import zoo
from basic_tf.training import phase_optimizer
from experiments.configs import basic, glyphs, pairs, simclr

# BASIC Table 6: batch size, steps, warm-up, learning rates, schedule, weight decay.
TABLE_6 = {
    ("s", "pretrain"): (16384, 500_000, 25_000, 1e-3, 1e-5, "cosine", 0.005),
    ("s", "text"): (65536, 500_000, 25_000, 1e-3, 1e-5, "cosine", 0.0025),
    ("m", "pretrain"): (16384, 1_200_000, 25_000, 4e-4, 2e-5, "linear", 0.01),
    ("m", "text"): (65536, 500_000, 25_000, 2.5e-4, 1e-5, "cosine", 0.0025),
    ("l", "pretrain"): (16384, 1_200_000, 25_000, 4e-4, 2e-5, "linear", 0.01),
    ("l", "text"): (65536, 500_000, 25_000, 2.5e-4, 1e-5, "cosine", 0.0025),
}


@pytest.mark.parametrize("size, phase", TABLE_6)
def test_every_number_of_table_6(size, phase):
    config = basic.get_config(size).phases[phase]
    actual = (
        *(config.batch_size, config.steps, config.warmup_steps, config.learning_rate),
        *(config.min_learning_rate, config.schedule, config.weight_decay),
    )
    assert actual == TABLE_6[size, phase]


@pytest.mark.parametrize("size", ["s", "m", "l"])
def test_the_scaled_variant_is_small_and_its_phases_can_train(size):
    config = basic.get_config(f"{size},scaled")
    model = zoo.build(config.model.to_dict(), config.tokenizer.vocabulary_size)
    assert model.image_encoder.count_params() < 10e6
    for name, phase in config.phases.items():
        phase_optimizer.check_rates(name, phase)
        assert phase.batch_size <= 1024 and phase.steps <= 1200
        assert phase.batch_size % phase.microbatch_image == 0


@pytest.mark.parametrize("argument", ["x", "s,tiny", ""])
def test_an_unknown_argument_is_refused(argument):
    with pytest.raises(ValueError, match="use s, m or l, with ,scaled or without"):
        basic.get_config(argument)


@pytest.mark.parametrize("argument", ["resnet50_x1", "resnet50_x4,sqrt"])
def test_the_numbers_of_simclr(argument):
    """Sections 2.2 and 4.2 of the paper; both scalings meet at its batch size."""
    config = simclr.get_config(argument)
    phase = config.phases.simclr
    assert (phase.batch_size, phase.steps, phase.warmup_steps) == (4096, 31278, 3128)
    assert phase.learning_rate == pytest.approx(4.8)
    assert (phase.weight_decay, phase.temperature, phase.head_dim) == (1e-6, 0.1, 128)
    assert (phase.optimizer, phase.batch_norm) == ("lars", "global")
    multiplier = int(argument[10])
    images, _ = zoo.without_weights(config.model.to_dict())
    assert images[0].embedding_dim == config.model.embedding_dim == 2048 * multiplier
    phase_optimizer.check_rates("simclr", phase)


def test_an_unknown_simclr_is_refused():
    with pytest.raises(ValueError, match=r"simclr\.py:resnet50: use glyphs or one of"):
        simclr.get_config("resnet50")


def test_pairs_without_a_source_are_refused():
    with pytest.raises(ValueError, match=r"name the data: .*pairs\.py:csv:FILE"):
        pairs.get_config()


def test_all_configurations_have_the_same_fields():
    config = glyphs.get_config()
    for other in (pairs.get_config("csv:pairs.csv"), basic.get_config()):
        assert set(other) == set(config)
        assert set(other.data) == set(config.data)
        for phase in other.phases.values():
            if phase.kind == "contrastive":
                assert set(phase) == set(config.phases.joint)
