"""A dual encoder on your own pairs: `pairs.py:SOURCE`, as in `pairs.py:csv:pairs.csv`.

Trains both encoders contrastively on a source or a mixture of them; see
`basic_tf/data/sources.py` and `basic_tf/data/mixture.py`.
"""

from ml_collections import ConfigDict

from basic_tf.models import zoo
from basic_tf.optimizers import groups
from experiments.configs import basic


def get_config(argument=""):
    """The experiment, as a `ConfigDict`.

    Args:
        argument: as `mixture.load` takes it.

    Raises:
        ValueError: without one.
    """
    if not argument:
        raise ValueError(
            "name the data: --config experiments/configs/pairs.py:csv:FILE, or another "
            "source"
        )
    config = ConfigDict()
    config.seed = 0
    config.data = {"train": argument, "data_dir": "", "max_bad_fraction": 0.01}
    config.tokenizer = {"vocabulary_size": 8000}
    config.model = zoo.configuration("basic_nano")
    config.model.image_encoder.image_size = 64
    config.model.text_encoder.max_length = 64
    config.log_every = 20
    config.checkpoint_every = 200
    config.evaluation = {"tasks": (), "every_steps": 0}
    config.phase_order = ("joint",)
    config.phases = {
        "joint": {
            "kind": "contrastive",
            "steps": 2000,
            "batch_size": 256,
            "learning_rate": 2e-3,
            "min_learning_rate": 2e-5,
            "warmup_steps": 100,
            "schedule": "cosine",
            "weight_decay": 0.01,
            "augmentation": basic.random_crop(),
            "optimizer": "adafactorw",
            "optimizer_options": {},
            "rules": groups.ONE_RULE,
            "microbatch_image": 0,
            "max_non_finite_steps": 0,
            "microbatch_text": 0,
            "batch_norm": "microbatch",
            "rematerialization": "none",
            "accumulate": "buffer",
            "exclude_equal_captions": False,
        }
    }
    return config
