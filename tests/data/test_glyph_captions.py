import numpy as np
import pytest

from basic_tf.data import glyph_captions


def test_the_caption_mixture_is_as_written():
    shares = [share for share, *_ in glyph_captions.MIXTURE.values()]
    assert sum(shares) == pytest.approx(1)
    rng = np.random.default_rng(0)
    captions = [
        glyph_captions.draw_caption("lock", "red", "blue", False, rng)
        for _ in range(4000)
    ]
    bare = np.mean([caption == "lock" for caption in captions])
    silent = np.mean(["lock" not in caption for caption in captions])
    assert bare == pytest.approx(0.30, abs=0.03)
    assert silent == pytest.approx(0.10, abs=0.02)
