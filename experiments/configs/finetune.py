"""Trains a run on, on your own pairs: `finetune.py:RUN,TABLE` or `...:RUN,TABLE,lit`.

RUN is the folder of a run, such as `tools.import_weights` makes of CLIP's weights; its
model, weights and tokenizer are what this one starts with. TABLE is what `csv:TABLE`
reads. `lit` locks the image encoder and trains the text encoder and the temperature
(LiT, Zhai et al. 2022): every image is embedded once.
"""

from ml_collections import ConfigDict

from basic_tf.optimizers import groups
from experiments.configs import basic, repeat


def get_config(argument=""):
    """The experiment, as a `ConfigDict`.

    Args:
        argument: folder of the run and path of the table, with a comma between; `,lit`
            behind them locks the image encoder.

    Raises:
        ValueError: for another argument, or a folder without a run.
    """
    run, _, rest = argument.partition(",")
    table, _, variant = rest.partition(",")
    if not run or not table or variant not in ("", "lit"):
        raise ValueError(f"finetune.py:{argument}: use RUN,TABLE or RUN,TABLE,lit")
    first = repeat.get_config(run)
    config = ConfigDict()
    config.seed = 0
    config.initial_run = run
    config.data = {"train": f"csv:{table}", "data_dir": "", "max_bad_fraction": 0.01}
    config.tokenizer = first.tokenizer
    config.model = first.model
    config.log_every = 10
    config.checkpoint_every = 100
    config.evaluation = {"tasks": (), "every_steps": 0}
    config.phase_order = ("finetune",)
    config.phases = {
        "finetune": {
            "kind": "contrastive",
            "steps": 1000,
            "batch_size": 256,
            "learning_rate": 1e-5,
            "min_learning_rate": 0.0,
            "warmup_steps": 100,
            "schedule": "cosine",
            "weight_decay": 0.1,
            "augmentation": {} if variant else basic.random_crop(),
            "optimizer": "adamw",
            "optimizer_options": {"beta_2": 0.98, "epsilon": 1e-6},  # as CLIP's ViTs
            "rules": groups.FROZEN_IMAGES if variant else groups.ONE_RULE,
            "microbatch_image": 64,
            "max_non_finite_steps": 0,
            "microbatch_text": 64,
            "batch_norm": "microbatch",
            "rematerialization": "none",
            "accumulate": "buffer",
            "exclude_equal_captions": False,
        }
    }
    return config
