"""The program prints plans, as a table and as JSON; a mistake is one line."""

import json

from tests import child_processes


def run_program(*arguments):
    return child_processes.run(["-m", "tools.plan_training", *arguments])


def test_json_has_the_numbers_of_every_strategy():
    process = run_program(
        *("--model=basic_nano", "--batch_size=512", "--devices=8"),
        *("--mesh=batch:4,model:2", "--memory_gb=0.1", "--json"),
    )
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    rows = {row["strategy"]: row for row in found["strategies"]}
    assert list(rows) == [
        *("data_parallel", "pipelining", "slots"),
        *("spmd", "spmd_remat", "spmd_block"),
    ]
    for row in rows.values():
        assert sum(row["bytes"].values()) == row["total_bytes"]
        assert row["fits"] == (row["total_bytes"] <= 0.1 * 2**30)
    assert not rows["data_parallel"]["fits"]
    assert rows["pipelining"]["largest_microbatch_size"] < 64
    assert found["mesh"] == {"batch": 4, "model": 2}
    assert rows[found["recommended"]]["fits"]
    assert found["recommended"] in found["recommendation"]


def test_the_table_has_a_column_a_strategy_and_a_recommendation():
    process = run_program("--model=basic_nano", "--batch_size=64", "--memory_gb=1")
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    columns = lines[2].split()
    assert columns[0] == "data_parallel" and columns[-1] == "spmd_block"
    (fits,) = [line.split()[1:] for line in lines if line.startswith("fits")]
    assert fits == ["yes"] * len(columns)
    assert lines[-1].startswith("Use data_parallel, 64 pairs of a device at a time")


def test_a_mistake_is_one_line():
    process = run_program("--model=basic_xl", "--batch_size=64")
    assert process.returncode == 1
    (line,) = [row for row in process.stderr.splitlines() if row.startswith("error: ")]
    assert "no model 'basic_xl'; known: basic_s, basic_m, basic_l" in line
    assert "Traceback" not in process.stderr
