"""BASIC in three phases on the embedded glyphs, sized for two CPU cores.

`glyphs.py` or `glyphs.py:nano` trains in the paper's three phases; `glyphs.py:scratch`
trains both encoders contrastively from scratch for about the same time.
"""

import copy

from ml_collections import ConfigDict

from basic_tf.models import zoo
from basic_tf.optimizers import groups

AUGMENTATION = {
    "affine": {
        "max_rotation": 8.0,
        "max_shear": 0.15,
        "max_zoom": 0.15,
        "max_shift": 0.06,
    }
}


def get_config(argument="nano"):
    """The experiment, as a `ConfigDict`.

    Args:
        argument: "nano" or "scratch".

    Raises:
        ValueError: for another argument.
    """
    arguments = {"nano": _three_phases, "scratch": _from_scratch}
    if argument not in arguments:
        raise ValueError(f"glyphs.py:{argument}: use one of {', '.join(arguments)}")
    config = ConfigDict()
    config.seed = 0
    config.data = {
        "train": "tfds:glyphs/concepts:train",
        "data_dir": "",
        "max_bad_fraction": 0.01,
    }
    config.tokenizer = {"vocabulary_size": 400}
    config.model = zoo.configuration("basic_nano")
    config.log_every = 50
    config.checkpoint_every = 500
    config.evaluation = {
        "tasks": (
            *("validation", "serif", "phosphor", "remix", "digits", "colors"),
            *("serif:geometry", "phosphor:geometry", "remix:geometry"),
        ),
        "every_steps": 0,  # training evaluates at none
    }
    phases = arguments[argument]()
    config.phase_order = tuple(phases)
    config.phases = phases
    return config


def _three_phases():
    return {
        "pretrain": _phase(
            "supervised", steps=1350, batch_size=128, learning_rate=6e-3
        ),
        "text": _phase(
            "contrastive",
            steps=115,
            batch_size=1024,
            learning_rate=4e-3,
            warmup_steps=40,
            microbatch=256,
            rules=groups.FROZEN_IMAGES,
            augmentation={},
        ),
        "joint": _phase(
            "contrastive",
            steps=8,
            batch_size=1024,
            learning_rate=4e-4,
            min_learning_rate=2e-5,
            warmup_steps=4,
            microbatch=128,
            # In so few steps the moving averages would not follow the weights.
            batch_norm="frozen",
        ),
    }


def _from_scratch():
    return {"scratch": _phase("contrastive", steps=650, batch_size=256)}


def _phase(
    kind,
    steps,
    batch_size,
    learning_rate=2e-3,
    min_learning_rate=2e-5,
    augmentation=AUGMENTATION,
    warmup_steps=100,
    microbatch=0,
    batch_norm="microbatch",
    rules=groups.ONE_RULE,
):
    kinds = {
        "supervised": {"label_balance": 0.4},
        "contrastive": {
            "microbatch_text": microbatch,
            "accumulate": "buffer",
            "exclude_equal_captions": False,
        },
    }
    return {
        "kind": kind,
        "steps": steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "min_learning_rate": min_learning_rate,
        "warmup_steps": warmup_steps,
        "schedule": "cosine",
        "weight_decay": 0.01,
        "augmentation": copy.deepcopy(augmentation),  # of this phase alone
        "optimizer": "adafactorw",
        "optimizer_options": {},
        "rules": rules,
        "microbatch_image": microbatch,
        "max_non_finite_steps": 0,  # the first one stops the run
        "batch_norm": batch_norm,
        "rematerialization": "none",
    } | kinds[kind]
