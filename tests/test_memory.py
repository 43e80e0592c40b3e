import subprocess
import sys

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
