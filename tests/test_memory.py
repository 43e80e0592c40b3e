import subprocess
import sys

import tensorflow as tf

from basic_tf import memory

PROGRAM = """
from basic_tf import memory
before = memory.peak_memory_mb()
block = bytearray(200 * 2**20)
block[:: 2**12] = b"x" * len(block[:: 2**12])
print(memory.peak_memory_mb() - before)
del block
print(memory.forget_peak() - before)
"""


def test_peak_memory_grows_by_what_is_used_and_can_be_forgotten():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    grown, kept = map(int, process.stdout.split())
    assert 195 <= grown <= 215
    assert kept <= 15


def test_the_memory_of_gpus_is_that_of_all_together(monkeypatch):
    peaks, current = {"GPU:0": 300, "GPU:1": 100}, {"GPU:0": 20, "GPU:1": 30}
    of_gpus = tf.config.experimental
    monkeypatch.setattr(
        of_gpus, "get_memory_info", lambda name: {"peak": peaks[name] * 2**20}
    )
    monkeypatch.setattr(
        of_gpus, "reset_memory_stats", lambda name: peaks.update({name: current[name]})
    )
    gpus = memory.OfGpus(2)
    assert gpus.peak_memory_mb() == 400
    assert gpus.forget_peak() == gpus.peak_memory_mb() == 50
