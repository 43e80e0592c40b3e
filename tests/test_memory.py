from basic_tf import memory


def test_peak_memory_grows_with_use():
    before = memory.peak_memory_mb()
    block = bytearray(200 * 2**20)
    block[:: 2**12] = b"x" * len(block[:: 2**12])
    assert memory.peak_memory_mb() >= before
    assert memory.peak_memory_mb() >= 200
