"""How much memory this process has taken."""

import dataclasses
import pathlib
import re
import resource

import tensorflow as tf

_STATUS = pathlib.Path("/proc/self/status")  # Linux
_CLEAR = pathlib.Path("/proc/self/clear_refs")


def peak_memory_mb():
    """Largest resident memory of this process so far, in MB (of 2^20 bytes)."""
    if _STATUS.is_file():  # not inherited from the parent, as ru_maxrss is
        return round(int(re.search(r"VmHWM:\s+(\d+)", _STATUS.read_text())[1]) / 1024)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def forget_peak():
    """Lets `peak_memory_mb` count from now on, where the system can; the new peak."""
    if _CLEAR.is_file():
        _CLEAR.write_text("5")  # proc(5): sets the peak to what is resident now
    return peak_memory_mb()


@dataclasses.dataclass(frozen=True)
class OfGpus:
    """The same of the first GPUs, all together: what TensorFlow has allocated there."""

    count: int

    def peak_memory_mb(self):
        infos = map(tf.config.experimental.get_memory_info, self._names())
        return round(sum(info["peak"] for info in infos) / 2**20)

    def forget_peak(self):
        for name in self._names():
            tf.config.experimental.reset_memory_stats(name)
        return self.peak_memory_mb()

    def _names(self):
        return [f"GPU:{index}" for index in range(self.count)]
