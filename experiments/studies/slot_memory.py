"""The memory of a step that adds gradients up in a buffer, and of one in slots.

Of a text encoder that is mostly weights, each step in a process of its own.
"""

import ctypes
import math

import keras
import numpy as np
import tensorflow as tf
from ml_collections import ConfigDict

from basic_tf.models import zoo
from basic_tf.optimizers import adafactorw
from basic_tf.training import contrastive_trainer
from experiments.studies import fresh_process

BUFFER, SLOTS = "buffer", "slots"
M_MMAP_THRESHOLD = -3  # of glibc's mallopt: larger blocks are returned when freed
NUM_LAYERS, QUICK_NUM_LAYERS = 12, 4  # 38 and 13 million weights


def measure(quick):
    """Rows of the steps, in pairs: one with a buffer, one with slots."""
    return [
        fresh_process.measure(
            {
                "accumulate": mode,
                "momentum_dtype": dtype,
                "num_layers": QUICK_NUM_LAYERS if quick else NUM_LAYERS,
            }
        )
        for dtype in (("float32",) if quick else ("float32", "bfloat16"))
        for mode in (BUFFER, SLOTS)
    ]


def measure_step(accumulate, momentum_dtype, num_layers):
    """The numbers of a row, measured in this process."""
    # The peak is to be that of tensors, not of what the heap keeps when they are gone.
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)
    keras.utils.set_random_seed(0)
    configuration = ConfigDict(zoo.configuration("basic_nano"))
    configuration.text_encoder.update(num_layers=num_layers, width=512, num_heads=8)
    model = zoo.build(configuration.to_dict(), 400)
    rules = (("/image_encoder/|log_scale", {"train": False}), ("/text_encoder/", {}))
    ours = contrastive_trainer.ContrastiveTrainer(
        model, rules, microbatch_text=2, accumulate=accumulate
    )
    optimizer = adafactorw.AdaFactorW(1e-4, momentum_dtype=momentum_dtype)
    optimizer.build(ours.trained_variables)
    ours.compile(optimizer, jit_compile=False)
    rng = np.random.default_rng(0)
    batch = {
        "image_embedding": tf.constant(rng.normal(size=(8, 128)), tf.float32),
        "token_ids": tf.constant(rng.integers(1, 400, (8, 4)), tf.int32),
    }
    step = tf.function(ours.train_step)
    weights = sum(math.prod(v.shape) for v in ours.trained_variables)
    return {"weights_mb": round(4 * weights / 2**20, 1)} | (
        fresh_process.time_and_memory(step, (batch,), repetitions=3)
    )


def saved(rows):
    """What slots save, in MB, by the dtype of first moments; the weights beside it."""
    saved_mb = {
        f"saved_mb_{buffer['momentum_dtype']}": _saved_mb(buffer, slots)
        for buffer, slots in _pairs(rows)
    }
    return saved_mb | {"weights_mb": rows[0]["weights_mb"]}


def summary(rows):
    """The same in words, and at which price."""
    return " ".join(
        f"With first moments in {buffer['momentum_dtype']}, a step that adds gradients "
        f"up in a buffer takes {buffer['step_memory_mb']} MB, one that puts them into "
        f"slots {slots['step_memory_mb']} MB: "
        f"{_saved_mb(buffer, slots) / buffer['weights_mb']:.2f} float32 copies of the "
        f"{buffer['weights_mb']} MB of weights are saved, for "
        f"{slots['cpu_seconds'] / buffer['cpu_seconds']:.2f} times the processor time."
        for buffer, slots in _pairs(rows)
    )


def _pairs(rows):
    return zip(rows[::2], rows[1::2], strict=True)


def _saved_mb(buffer, slots):
    return buffer["step_memory_mb"] - slots["step_memory_mb"]
