"""SimCLR (Chen et al. 2020): an image encoder from images without names.

`simclr.py:glyphs` trains on the embedded glyphs in minutes. `simclr.py:resnet50_x1`
(`_x2`, `_x4`) holds the paper's numbers for ImageNet, 100 epochs; `--config.data.train`
names the data. `,sqrt` behind either scales the learning rate by the root of the batch
size instead of in proportion.

The text encoder is there for a phase that gives the images a language; this one does
not train it.
"""

import copy

from ml_collections import ConfigDict

from basic_tf.models import zoo
from basic_tf.optimizers import groups, schedules

IMAGENET_EXAMPLES = 1_281_167
_EPOCHS, _WARMUP_EPOCHS = 100, 10  # SimCLR section 2.2
_RESNETS = ("resnet50_x1", "resnet50_x2", "resnet50_x4")


def get_config(argument="glyphs"):
    """The experiment, as a `ConfigDict`.

    Args:
        argument: "glyphs" or a ResNet, and ",sqrt" behind it or nothing.

    Raises:
        ValueError: for another argument.
    """
    name, _, scaling = argument.partition(",")
    if name not in ("glyphs", *_RESNETS) or scaling not in ("", "sqrt"):
        raise ValueError(
            f"simclr.py:{argument}: use glyphs or one of {', '.join(_RESNETS)}, with "
            ",sqrt or without"
        )
    config = ConfigDict()
    config.seed = 0
    config.data = {"train": "", "data_dir": "", "max_bad_fraction": 0.01}
    config.tokenizer = {"vocabulary_size": 400}
    config.model = zoo.configuration("basic_nano")
    config.log_every = 100
    config.checkpoint_every = 1000
    config.evaluation = {"tasks": ()}
    config.phase_order = ("simclr",)
    config.phases = {"simclr": _phase()}
    if name == "glyphs":
        _train_on_glyphs(config)
    else:
        config.model.image_encoder = copy.deepcopy(zoo.RESNETS[name])
        config.model.embedding_dim = 32 * config.model.image_encoder.width
        config.model.precision = "mixed_bfloat16"
    phase = config.phases.simclr
    phase.learning_rate = schedules.simclr_learning_rate(
        phase.batch_size, scaling or "linear"
    )
    return config


def _phase(batch_size=4096):
    steps_per_epoch = IMAGENET_EXAMPLES / batch_size
    return {
        "kind": "simclr",
        "steps": round(_EPOCHS * steps_per_epoch),
        "batch_size": batch_size,
        "learning_rate": 4.8,
        "min_learning_rate": 0.0,
        "warmup_steps": round(_WARMUP_EPOCHS * steps_per_epoch),
        "schedule": "cosine",
        "weight_decay": 1e-6,
        "augmentation": {},  # the views are SimCLR's own
        "strength": 1.0,
        "temperature": 0.1,
        "head_layers": 2,
        "head_dim": 128,
        "online_probe": False,  # which needs names, and teaches the encoder none
        "optimizer": "lars",
        "optimizer_options": {},
        "rules": groups.ONE_RULE,
        "microbatch_image": 0,
        "max_non_finite_steps": 0,
        "batch_norm": "global",
        "rematerialization": "none",
    }


def _train_on_glyphs(config):
    config.data.train = "tfds:glyphs/concepts:train"
    config.log_every = 20
    config.checkpoint_every = 100
    config.phases.simclr.update(
        steps=150,
        batch_size=256,
        warmup_steps=20,
        strength=0.5,
        temperature=0.2,
    )
