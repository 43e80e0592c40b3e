"""Trains a run on, on your own pairs: `finetune.py:RUN,SOURCE` or `...:RUN,SOURCE,lit`.

RUN is the folder of a run, such as `tools.import_weights` makes of CLIP's weights; its
model, weights and tokenizer are what this one starts with. SOURCE is as in `pairs.py`:
`csv:pairs.csv`, another source or a mixture. `lit` locks the image encoder and trains
the text encoder and the temperature (LiT, Zhai et al. 2022): every image is embedded
once.
"""

from basic_tf.optimizers import groups
from experiments.configs import pairs, repeat


def get_config(argument=""):
    """The experiment, as a `ConfigDict`: that of `pairs.py` but for what is set here.

    Args:
        argument: folder of the run and source, with a comma between; `,lit` behind
            them locks the image encoder.

    Raises:
        ValueError: for another argument, or a folder without a run.
    """
    run, _, rest = argument.partition(",")
    source = rest.removesuffix(",lit")  # whose patterns may hold commas
    if not run or ":" not in source:
        raise ValueError(
            f"finetune.py:{argument}: use RUN,SOURCE or RUN,SOURCE,lit, as in "
            "finetune.py:runs/clip,csv:pairs.csv"
        )
    first, config = repeat.get_config(run), pairs.get_config(source)
    config.initial_run = run
    config.tokenizer, config.model = first.tokenizer, first.model
    config.log_every = 10
    config.checkpoint_every = 100
    phase = config.phases.joint.to_dict() | {
        "steps": 1000,
        "learning_rate": 1e-5,
        "min_learning_rate": 0.0,
        "weight_decay": 0.1,
        "optimizer": "adamw",
        "optimizer_options": {"beta_2": 0.98, "epsilon": 1e-6},  # as CLIP's ViTs
        "microbatch_image": 64,
        "microbatch_text": 64,
    }
    if source != rest:
        phase |= {"rules": groups.FROZEN_IMAGES, "augmentation": {}}
    config.phase_order = ("finetune",)
    config.phases = {"finetune": phase}
    return config
