"""The optimizer of a phase, from its configuration."""

import inspect
import math

from basic_tf.optimizers import schedules
from basic_tf.optimizers.adafactorw import AdaFactorW
from basic_tf.optimizers.adamw import AdamW
from basic_tf.optimizers.lars import LARS
from basic_tf.training import distribution

OPTIMIZERS = {"adafactorw": AdaFactorW, "adamw": AdamW, "lars": LARS}


def check_rates(name, config):
    """Refuses rates that cannot train, which needs neither data nor model.

    Args:
        name: name of the phase.
        config: see `phases.make_phase`.

    Raises:
        ValueError: naming the phase and the field.
    """
    if not 0 <= config.min_learning_rate <= config.learning_rate < math.inf:
        raise ValueError(
            f"phase {name}: min_learning_rate {config.min_learning_rate} must be at "
            f"least 0 and at most learning_rate {config.learning_rate}, a number"
        )
    for field in ("weight_decay", "max_non_finite_steps"):
        value = config[field]
        if not 0 <= value < math.inf:
            raise ValueError(f"phase {name}: {field} {value} must be at least 0")
    try:
        make_optimizer(config)
    except (TypeError, ValueError) as error:
        raise ValueError(f"phase {name}: {error}") from None


def make_optimizer(config):
    """The optimizer of a phase, not built yet.

    Args:
        config: see `phases.make_phase`; `optimizer_options` are arguments of the
            optimizer's class besides learning rate, decay and rules.

    Raises:
        ValueError: for an unknown optimizer or option, or a schedule without end.
    """
    if config.optimizer not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise ValueError(f"optimizer {config.optimizer!r} is none of {known}")
    optimizer = OPTIMIZERS[config.optimizer]
    schedule = schedules.make_schedule(
        config.schedule,
        config.learning_rate,
        config.steps,
        config.warmup_steps,
        config.min_learning_rate,
    )
    options = dict(config.optimizer_options)
    known = _options(optimizer)
    for option in options:
        if option not in known:
            raise ValueError(
                f"{config.optimizer} has no option {option!r}; it has "
                f"{', '.join(known)}"
            )
    if config.optimizer == "adafactorw":  # the others' is float32
        options.setdefault("momentum_dtype", distribution.momentum_dtype())
    return optimizer(schedule, decay=config.weight_decay, rules=config.rules, **options)


def _options(optimizer):
    """What `optimizer_options` may name: its own arguments, and Keras's clipping."""
    elsewhere = ("learning_rate", "decay", "rules", "name", "kwargs")
    arguments = inspect.signature(optimizer).parameters
    own = [argument for argument in arguments if argument not in elsewhere]
    return [*own, "clipnorm", "global_clipnorm", "clipvalue"]
