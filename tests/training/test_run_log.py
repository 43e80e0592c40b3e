import json

import pytest

from basic_tf.training import run_log

ROWS = [
    {"phase": "a", "step": 2, "total_step": 2, "examples": 20, "seconds": 1.0},
    {"phase": "a", "step": 4, "total_step": 4, "examples": 40, "seconds": 2.0},
    {"phase": "b", "step": 5, "total_step": 9, "examples": 100, "seconds": 4.0},
]


@pytest.fixture
def workdir(tmp_path):
    rows = [
        row
        | {"cpu_seconds": row["seconds"], "peak_memory_mb": 7, "non_finite_steps": 1}
        for row in ROWS
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "metrics.jsonl").write_text(text)
    return tmp_path


def test_a_summary_adds_up_the_phases(workdir):
    summary = run_log.summarize(workdir)
    assert summary["seconds"] == 4.0
    assert summary["examples_per_second"] == 35.0
    assert summary["phases"]["a"]["examples_per_second"] == 20.0
    assert summary["phases"]["b"]["seconds"] == 2.0


def test_a_line_cut_off_by_a_kill_is_left_out(workdir):
    path = workdir / "metrics.jsonl"
    path.write_text(path.read_text() + '{"phase": "b", "st')
    assert len(run_log.read_rows(workdir)) == 3


def test_rows_after_the_checkpoint_are_dropped(workdir):
    class State:
        total_step = 4

    run_log.RunLog(workdir, State())
    assert [row["total_step"] for row in run_log.read_rows(workdir)] == [2, 4]
