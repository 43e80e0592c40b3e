"""A run on a labelled and a captioned source that is killed and goes on."""

import numpy as np
import pytest
import tiny_run
from PIL import Image

from basic_tf.training import loop, run_log
from tests.data.image_files import encode, noise
from tests.data.source_files import write_tar
from tests.training.interrupted_run import assert_same_end, train_until

COLORS = ("red", "green", "blue")


@pytest.fixture
def config(tmp_path):
    """First labels, then pairs and labels; 32 examples with labels, 32 pairs."""
    members = {}
    for number in range(32):
        color = COLORS[number % 3]
        image = encode(Image.new("RGB", (32, 32), color), "PNG")
        members |= {f"{number}.png": image, f"{number}.txt": f"all in {color} {number}"}
        folder = tmp_path / "data/classes" / f"noise {number % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(noise(32, 32, 3) // (1 + number))
        (folder / f"{number}.png").write_bytes(encode(image, "PNG"))
    write_tar(tmp_path / "data/pairs.tar", members)
    config = tiny_run.tiny_config("")
    config.data = {
        "train": (
            (f"webdataset:{tmp_path}/data/pairs.tar", 3),
            (f"folder:{tmp_path}/data/classes", 1),
        ),
        "data_dir": "",
    }
    config.tokenizer.vocabulary_size = 60
    config.phase_order = ("pretrain", "joint")
    return config


def test_a_run_on_a_mixture_that_is_killed_twice_ends_as_one_that_is_not(
    config, tmp_path, monkeypatch
):
    loop.train(config, tmp_path / "whole")
    train_until(monkeypatch, config, tmp_path / "killed", 3)  # in the supervised phase
    train_until(monkeypatch, config, tmp_path / "killed", 9)  # in the contrastive one
    loop.train(config, tmp_path / "killed")
    assert_same_end(tmp_path / "killed", tmp_path / "whole")
    losses = [row["loss"] for row in run_log.read_rows(tmp_path / "whole")]
    assert len(losses) == 6 and np.isfinite(losses).all()
