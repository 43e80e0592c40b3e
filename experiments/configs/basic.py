"""BASIC as its Table 6 trains it: `basic.py:s`, `basic.py:m` or `basic.py:l`.

`--config.data.train` names the data, whose examples need labels for the first phase.
`basic.py:s,scaled` and so on run on a laptop: the stages, phases and schedules of the
model in question at a fraction of its widths, batches and steps, on the glyphs.
"""

from ml_collections import ConfigDict

from basic_tf.models import zoo
from basic_tf.optimizers import groups

# BASIC Table 6, by size and by phase: batch size, steps, warm-up steps, largest and
# smallest learning rate, schedule, weight decay.
_FIELDS = (
    *("batch_size", "steps", "warmup_steps", "learning_rate", "min_learning_rate"),
    *("schedule", "weight_decay"),
)
_CONTRASTIVE = {
    "s": (65_536, 500_000, 25_000, 1e-3, 1e-5, "cosine", 0.0025),
    "m": (65_536, 500_000, 25_000, 2.5e-4, 1e-5, "cosine", 0.0025),
}
_PRETRAIN = {
    "s": (16_384, 500_000, 25_000, 1e-3, 1e-5, "cosine", 0.005),
    "m": (16_384, 1_200_000, 25_000, 4e-4, 2e-5, "linear", 0.01),
}
_CONTRASTIVE["l"], _PRETRAIN["l"] = _CONTRASTIVE["m"], _PRETRAIN["m"]
_MICROBATCH = 8192  # BASIC section 8, for L
_SCALE = 64  # of batches, for `scaled`


def get_config(argument="s"):
    """The experiment, as a `ConfigDict`.

    Args:
        argument: "s", "m" or "l", and ",scaled" for a model that runs anywhere.

    Raises:
        ValueError: for another argument.
    """
    size, _, variant = argument.partition(",")
    if size not in _PRETRAIN or variant not in ("", "scaled"):
        raise ValueError(f"basic.py:{argument}: use s, m or l, with ,scaled or without")
    config = ConfigDict()
    config.seed = 0
    config.data = {"train": "", "data_dir": "", "max_bad_fraction": 0.01}
    config.tokenizer = {"vocabulary_size": 32_000}
    config.model = zoo.configuration(f"basic_{size}")
    config.model.precision = "mixed_bfloat16"
    config.log_every = 100
    config.checkpoint_every = 5_000
    config.evaluation = {"tasks": (), "every_steps": 0}
    phases = _phases(size)
    config.phase_order = tuple(phases)
    config.phases = phases
    if variant:
        _scale(config)
    return config


def _phases(size):
    contrastive = dict(zip(_FIELDS, _CONTRASTIVE[size], strict=True))
    # The paper gives no numbers for phase 3 but "a small learning rate" (ours).
    joint = contrastive | {"steps": 50_000, "warmup_steps": 2_500}
    joint["learning_rate"] = 10 * contrastive["min_learning_rate"]
    every = {
        "optimizer": "adafactorw",
        "optimizer_options": {},
        "rules": groups.ONE_RULE,
        "microbatch_image": _MICROBATCH,
        "max_non_finite_steps": 0,
        "batch_norm": "microbatch",
        "rematerialization": "none",
    }
    pairs = every | {
        "kind": "contrastive",
        "microbatch_text": _MICROBATCH,
        "accumulate": "buffer",
        "exclude_equal_captions": False,
    }
    return {
        "pretrain": every
        | {"augmentation": random_crop()}
        | dict(zip(_FIELDS, _PRETRAIN[size], strict=True))
        | {"kind": "supervised", "label_balance": 0.0},
        "text": pairs
        | contrastive
        | {"rules": groups.FROZEN_IMAGES, "augmentation": {}},
        "joint": pairs | joint | {"augmentation": random_crop()},
    }


def random_crop():
    """The augmentation of photographs: a crop; no flip, as captions may say `left`."""
    return {
        "crop": {"area": (0.5, 1.0), "aspect_ratio": (3 / 4, 4 / 3)},
        "flip": {"probability": 0.0},
    }


def _scale(config):
    config.data.train = "tfds:glyphs/concepts:train"
    config.tokenizer.vocabulary_size = 400
    config.log_every = 10
    config.checkpoint_every = 100
    config.evaluation.tasks = ("serif", "phosphor", "remix", "digits", "colors")
    config.model.embedding_dim = 128
    images, texts = config.model.image_encoder, config.model.text_encoder
    images.widths = tuple(max(2, width // 256) * 16 for width in images.widths)
    images.strides = (1, 2, 2) + (1,) * (len(images.strides) - 3)
    images.image_size, images.head_dim = 32, 16
    texts.update(width=128, num_heads=4, max_length=16)
    for phase in config.phases.values():
        phase.batch_size //= _SCALE
        phase.microbatch_image = phase.batch_size // 8
        if "microbatch_text" in phase:
            phase.microbatch_text = phase.batch_size // 8
        phase.steps //= 1_000
        phase.warmup_steps //= 1_000
        phase.augmentation = {}  # a crop would cut the glyphs off
    config.phases.pretrain.learning_rate = config.phases.text.learning_rate = 1e-3
