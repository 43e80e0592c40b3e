"""BASIC (Pham et al. 2021) in Keras 3 and TensorFlow."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

__version__ = "0.1.0"


def load(workdir):
    """Loads a trained run: model, tokenizer and preprocessing together.

    Args:
        workdir: folder of a run of `experiments.train`.

    Returns:
        `training.loaded_run.LoadedRun`.

    Raises:
        FileNotFoundError: if the folder holds no run with a complete checkpoint.
    """
    from basic_tf.training import loaded_run  # TensorFlow takes seconds to import

    return loaded_run.load(workdir)


def __getattr__(name):
    if name == "zoo":
        from basic_tf.models import zoo  # for the same reason

        return zoo
    raise AttributeError(f"basic_tf has no {name!r}")
