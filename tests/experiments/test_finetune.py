"""A run of CLIP's weights is trained on and goes back to OpenCLIP's names."""

import re
import shutil

import numpy as np
import pytest
import safetensors.numpy
import tiny_run
from PIL import Image

from basic_tf.export import weights
from basic_tf.training import loaded_run, loop, run_log
from experiments.configs import finetune, glyphs
from tests.imported_run import import_run, run_program
from tests.training.interrupted_run import assert_same_end, train_until

CAPTIONS = [f"a {letter} home" for letter in "abcdefghijklmnop"]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """`(imported run, table of 16 pairs, their pixels)`."""
    folder = tmp_path_factory.mktemp("given")
    workdir, _ = import_run(folder)
    pixels = np.random.default_rng(0).integers(0, 256, (16, 32, 32, 3), np.uint8)
    rows = ["image,caption"]
    for index, caption in enumerate(CAPTIONS):
        Image.fromarray(pixels[index]).save(folder / f"{index}.png")
        rows.append(f"{index}.png,{caption}")
    (folder / "pairs.csv").write_text("\n".join(rows))
    return workdir, folder / "pairs.csv", pixels


def small_config(run, table, variant=""):
    """Every batch is all the pairs, in another order."""
    config = finetune.get_config(f"{run},csv:{table}{variant}")
    config.log_every, config.checkpoint_every = 1, 2
    phase = config.phases.finetune
    phase.steps, phase.warmup_steps, phase.learning_rate = 6, 1, 1e-3
    phase.batch_size, phase.microbatch_image, phase.microbatch_text = 16, 0, 0
    phase.augmentation = {}
    return config


@pytest.fixture(scope="module")
def finished(given, tmp_path_factory):
    """Folder of a run that was trained on without an interruption."""
    workdir = tmp_path_factory.mktemp("finished")
    loop.train(small_config(*given[:2]), workdir)
    return workdir


def contrastive_loss(model, images, token_ids):
    """Of CLIP's figure 3, in float64."""
    images = np.float64(model.encode_image(images))
    texts = np.float64(model.encode_text(token_ids))
    logits = np.exp(float(model.log_scale)) * images @ texts.T
    losses = [
        np.mean(np.log(np.exp(side).sum(axis=1)) - np.diag(side))
        for side in (logits, logits.T)
    ]
    return np.mean(losses)


def test_the_first_loss_is_that_of_the_weights_it_starts_with(given, finished):
    workdir, _, pixels = given
    run = loaded_run.load(workdir)
    images = np.float32(pixels) / 255
    expected = contrastive_loss(run.model, images, run.tokenizer(CAPTIONS))
    losses = [row["loss"] for row in run_log.read_rows(finished)]
    np.testing.assert_allclose(losses[0], expected, rtol=1e-5)  # float32
    assert len(losses) == 6 and losses[-1] < losses[0]


def test_the_tokenizer_is_the_one_it_starts_with(given, finished):
    expected = (given[0] / "tokenizer.model").read_bytes()
    assert (finished / "tokenizer.model").read_bytes() == expected
    token_ids = loaded_run.load(finished).tokenizer(["home"])
    assert token_ids.numpy()[0, :4].tolist() == [515, 514, 516, 0]


def test_what_was_trained_on_is_exported_to_open_clip(finished, tmp_path):
    path = tmp_path / "a.safetensors"
    process = run_program("tools.export_weights", workdir=finished, output=path)
    assert process.returncode == 0, process.stderr
    actual = safetensors.numpy.load_file(path)
    expected = weights.to_state_dict(loaded_run.load(finished).model)
    assert actual.keys() == expected.keys()
    for name, array in actual.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_it_resumes_bit_for_bit_without_the_run_it_started_with(
    given, finished, tmp_path, monkeypatch
):
    workdir, table, _ = given
    shutil.copytree(workdir, tmp_path / "copy")
    config = small_config(tmp_path / "copy", table)
    train_until(monkeypatch, config, tmp_path / "run", 3)
    shutil.rmtree(tmp_path / "copy")
    loop.train(config, tmp_path / "run")
    assert_same_end(tmp_path / "run", finished)


def test_lit_keeps_every_bit_of_the_image_encoder(given, tmp_path):
    workdir, table, _ = given
    config = small_config(workdir, table, ",lit")
    config.phases.finetune.steps = 2
    config.phases.finetune.microbatch_text = 8
    loop.train(config, tmp_path)
    first, last = loaded_run.load(workdir).model, loaded_run.load(tmp_path).model
    for variable, before in zip(
        last.image_encoder.variables, first.image_encoder.variables, strict=True
    ):
        np.testing.assert_array_equal(variable, before, err_msg=before.path)
    assert not np.array_equal(last.log_scale, first.log_scale)
    ours, theirs = last.text_encoder.get_weights(), first.text_encoder.get_weights()
    assert not np.array_equal(ours[0], theirs[0])


def test_a_run_of_basic_is_trained_on_likewise(given, tmp_path):
    (tmp_path / "first").mkdir()
    tiny_run.write_untrained_run(tmp_path / "first")
    config = small_config(tmp_path / "first", given[1])
    config.phases.finetune.steps = 2
    loop.train(config, tmp_path / "run")
    texts = [path.read_bytes() for path in tmp_path.glob("*/tokenizer.model")]
    assert len(texts) == 2 and texts[0] == texts[1]
    first, last = (loaded_run.load(tmp_path / name).model for name in ("first", "run"))
    for variable, before in zip(
        last.trainable_variables, first.trainable_variables, strict=True
    ):
        # Two steps of AdamW, each of about the learning rate.
        np.testing.assert_allclose(variable, before, rtol=0, atol=4e-3)
    assert not np.array_equal(last.log_scale, first.log_scale)


def test_a_model_of_other_shapes_is_refused(given, tmp_path):
    config = small_config(*given[:2])
    config.model.image_encoder.image_size = 64
    message = (
        "does not fit this model: "
        "model/dual_encoder/image_encoder/position_embedding (65, 64) float32 "
        "(stored: [17, 64] float32)"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        loop.train(config, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("argument", ["", "run,", ",csv:a", "run,a.csv", "run,lit"])
def test_an_incomplete_argument_is_refused(argument):
    with pytest.raises(ValueError, match="use RUN,SOURCE or RUN,SOURCE,lit, as in"):
        finetune.get_config(argument)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no .*/config\.json; name a run's"):
        finetune.get_config(f"{tmp_path},csv:a.csv")


@pytest.mark.parametrize(
    "source", ["webdataset:{a,b}.tar", "3*csv:a,b.csv + 1*folder:photos"]
)
@pytest.mark.parametrize("variant", ["", ",lit"])
def test_any_source_is_taken_commas_and_all(given, source, variant):
    config = finetune.get_config(f"{given[0]},{source}{variant}")
    assert config.data.train == source
    assert bool(config.phases.finetune.augmentation) == (not variant)


def test_its_phase_has_the_fields_of_the_others(given):
    config = finetune.get_config(f"{given[0]},csv:a.csv")
    fields = set(glyphs.get_config().phases.joint)
    assert set(config.phases.finetune) == fields
