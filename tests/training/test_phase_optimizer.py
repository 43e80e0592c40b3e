import pytest
import tiny_run

from basic_tf.training import phase_optimizer


@pytest.fixture
def config(tmp_path):
    return tiny_run.tiny_config(tmp_path).phases.joint.unlock()


def test_options_reach_the_optimizer(config):
    config.optimizer, config.optimizer_options = "adamw", {"beta_2": 0.98}
    optimizer = phase_optimizer.make_optimizer(config)
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.98)
    assert optimizer.decay == config.weight_decay


def test_first_moments_of_adafactorw_are_bfloat16_unless_told_otherwise(config):
    assert phase_optimizer.make_optimizer(config).momentum_dtype == "bfloat16"
    config.optimizer_options = {"momentum_dtype": "float32", "global_clipnorm": 1.0}
    optimizer = phase_optimizer.make_optimizer(config)
    assert optimizer.momentum_dtype == "float32"
    assert optimizer.global_clipnorm == 1.0


@pytest.mark.parametrize("option", ["beta", "decay", "learning_rate", "kwargs"])
def test_an_option_that_it_has_not_names_those_that_it_has(config, option):
    config.optimizer, config.optimizer_options = "lars", {option: 1.0}
    message = (
        f"phase text: lars has no option {option!r}; it has momentum, "
        "trust_coefficient, clipnorm, global_clipnorm, clipvalue"
    )
    with pytest.raises(ValueError, match=message):
        phase_optimizer.check_rates("text", config)


def test_an_unknown_optimizer_names_the_known_ones(config):
    config.optimizer = "lion"
    with pytest.raises(ValueError, match="'lion' is none of adafactorw, adamw, lars"):
        phase_optimizer.check_rates("text", config)
