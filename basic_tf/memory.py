"""How much memory this process has taken."""

import pathlib
import re
import resource


def peak_memory_mb():
    """Largest resident memory of this process so far, in MB (of 2^20 bytes)."""
    status = pathlib.Path("/proc/self/status")
    if status.is_file():  # Linux: not inherited from the parent, as ru_maxrss is
        return round(int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
