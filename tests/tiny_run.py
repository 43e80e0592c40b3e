"""A run small enough for tests: all three phases on `glyphs/tiny`."""

from ml_collections import ConfigDict

from basic_tf.data import tokenizer
from basic_tf.models import zoo
from basic_tf.optimizers import groups
from basic_tf.training import checkpoints, loaded_run, loop


def tiny_config(data_dir):
    """A configuration that trains three phases in seconds."""
    phases = {
        "pretrain": _phase("supervised"),
        "text": _phase("contrastive", rules=groups.FROZEN_IMAGES, augmentation={}),
        "joint": _phase("contrastive", exclude_equal_captions=True),
    }
    return ConfigDict(
        {
            "seed": 3,
            "data": {
                "train": "tfds:glyphs/tiny:train",
                "data_dir": str(data_dir),
                "max_bad_fraction": 0.01,
            },
            "tokenizer": {"vocabulary_size": 200},
            "model": _model(),
            "log_every": 2,
            "checkpoint_every": 2,
            "evaluation": {"tasks": ("serif",)},
            "phase_order": tuple(phases),
            "phases": phases,
        }
    )


def _model():
    return {
        "embedding_dim": 16,
        "precision": "float32",
        "image_encoder": {
            "kind": "coatnet",
            "depths": (1, 1, 1),
            "widths": (8, 16, 32),
            "strides": (2, 2, 2),
            "blocks": ("mbconv", "transformer"),
            "image_size": 32,
            "head_dim": 16,
            "stride_on": "depthwise",
            "activation": "relu",
        },
        "text_encoder": {
            "kind": "text_transformer",
            "num_layers": 1,
            "width": 32,
            "num_heads": 2,
            "max_length": 16,
            "activation": "relu",
        },
    }


def _phase(kind, **fields):
    return {
        "kind": kind,
        "steps": 6,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "min_learning_rate": 1e-5,
        "warmup_steps": 2,
        "schedule": "cosine",
        "weight_decay": 0.01,
        "augmentation": {"affine": {"max_rotation": 5.0}},
        "microbatch_image": 0,
        "microbatch_text": 0,
        "batch_norm": "microbatch",
        "rematerialization": "none",
        "accumulate": "buffer",
        "label_balance": 0.5,
        "optimizer": "adafactorw",
        "optimizer_options": {},
        "max_non_finite_steps": 0,
        "rules": groups.ONE_RULE,
        "exclude_equal_captions": False,
    } | fields


def simclr_phase(**fields):
    """A phase of SimCLR, in seconds."""
    of_simclr = {"strength": 0.5, "temperature": 0.5, "head_layers": 2, "head_dim": 8}
    phase = _phase("simclr", augmentation={}, optimizer="lars", batch_norm="global")
    return phase | of_simclr | {"online_probe": False} | fields


def train_tiny_run(folder):
    """Trains it into `folder / "run"`, with its data beside it; the run's path."""
    workdir = folder / "run"
    loop.train(tiny_config(folder / "data"), workdir)
    return workdir


def write_untrained_run(workdir):
    """The same model with fresh weights, in a folder that is there, without data."""
    config = tiny_config("data")
    content = tokenizer.train(["a red square", "a blue circle"] * 3, 40)
    ours = tokenizer.Tokenizer(content, config.model.text_encoder.max_length)
    model = zoo.build(config.model.to_dict(), ours.vocabulary_size)
    checkpoints.save(workdir / "checkpoints", 0, loaded_run.model_variables(model))
    (workdir / "config.json").write_text(config.to_json_best_effort())
    (workdir / "tokenizer.model").write_bytes(content)
    (workdir / "labels.json").write_text("[]")
