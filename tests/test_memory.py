import subprocess
import sys

PROGRAM = """
from basic_tf import memory
before = memory.peak_memory_mb()
block = bytearray(200 * 2**20)
block[:: 2**12] = b"x" * len(block[:: 2**12])
print(memory.peak_memory_mb() - before)
"""


def test_peak_memory_grows_by_what_is_used():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert 195 <= int(process.stdout) <= 215
