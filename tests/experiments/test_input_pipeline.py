import numpy as np
import pytest

from experiments.studies import input_pipeline


@pytest.mark.parametrize("source", input_pipeline.SOURCES)
def test_every_source_is_written_and_read_as_a_run_does(tmp_path, source, monkeypatch):
    monkeypatch.setattr(input_pipeline, "BATCH", 4)
    rng = np.random.default_rng(0)
    photographs = input_pipeline._photographs((50, 40), 6, rng)
    captions = [f"a {word}" for word in ("cat", "dog", "cat", "house", "tree", "dog")]
    location = input_pipeline.SOURCES[source](tmp_path, photographs, captions)
    dataset = input_pipeline._whole(f"{source}:{location}", 16, 8, tmp_path)
    (batch, _) = dataset
    assert batch["image"].shape == (4, 16, 16, 3)
    assert 0.1 < np.mean(batch["image"]) < 0.9 and np.std(batch["image"]) > 0.05
    assert batch["token_ids"].shape == (4, 64)
    assert (np.count_nonzero(batch["token_ids"], axis=1) >= 2).all()
    assert not (tmp_path / "bad_examples.jsonl").read_text()


@pytest.mark.parametrize("stage", [input_pipeline.DECODE, input_pipeline.DECODE_RESIZE])
def test_files_in_memory_are_read_as_often_as_asked(stage):
    photographs = input_pipeline._photographs((50, 40), 3, np.random.default_rng(0))
    dataset = input_pipeline._of_memory(photographs, 16, 100, stage)
    assert [len(values) for values in dataset] == [64, 36]
    row = input_pipeline._read(dataset, 100)
    assert row["images_per_cpu_second"] > 1 and row["memory_growth_mb"] < 1000


def test_photographs_are_of_their_size_and_differ():
    files = input_pipeline._photographs((50, 40), 8, np.random.default_rng(0))
    assert len(set(files)) == 8
    assert {input_pipeline.decoding.decode_image(file).shape for file in files} == {
        (40, 50, 3)
    }


@pytest.mark.parametrize("speed, verdict", [(79.9, "below"), (80.0, "at")])
def test_the_whole_pipeline_is_set_beside_its_goal(speed, verdict):
    def row(stage, source, speed, growth=3):
        return {
            "stage": stage,
            "source": source,
            "examples": 1000,
            "images_per_cpu_second": speed,
            "memory_growth_mb": growth,
        }

    rows = [row("decode", "x", 200.0), row("decode_resize", "x", 100.0)]
    rows += [row("whole_pipeline", "tfrecord", speed), row("memory", "tfrecord", 1.0)]
    summary = input_pipeline._summary(rows)
    assert f"from tfrecord makes 0.80 of that, {verdict} the goal of 0.8." in summary
    assert "200 images a processor second decoded, 100 decoded, cropped" in summary
    assert summary.endswith("Over 1000 examples the process grew by 3 MB.")
    (axes,) = input_pipeline._plot(rows).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "whole_pipeline, tfrecord" and len(labels) == 3
