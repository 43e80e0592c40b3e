"""A dual encoder on your own pairs: `csv.py:FILE`, a table of image paths and captions.

Trains both encoders contrastively. The table needs a column of paths relative to it
(`image`, `filepath`, `path`, `image_path`, `file` or `filename`) and one of captions
(`caption`, `title`, `text` or `description`).
"""

from ml_collections import ConfigDict

from basic_tf.models import zoo
from basic_tf.optimizers import groups
from experiments.configs import basic


def get_config(argument=""):
    """The experiment, as a `ConfigDict`.

    Args:
        argument: path of the table.

    Raises:
        ValueError: without one.
    """
    if not argument:
        raise ValueError("name the table: --config experiments/configs/csv.py:FILE")
    config = ConfigDict()
    config.seed = 0
    config.data = {"train": f"csv:{argument}", "data_dir": "", "max_bad_fraction": 0.01}
    config.tokenizer = {"vocabulary_size": 8000}
    config.model = zoo.configuration("basic_nano")
    config.model.image_encoder.image_size = 64
    config.model.text_encoder.max_length = 64
    config.log_every = 20
    config.checkpoint_every = 200
    config.evaluation = {"tasks": ()}
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
