"""The program refuses flags that do not go together, in a line."""

import pytest

from tests import child_processes


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--mesh=model:2"], "--mesh model:2 is of --strategy spmd alone"),
        (["--strategy=spmd"], "spmd needs its devices, such as --mesh model:2"),
    ],
)
def test_a_mesh_and_its_strategy_go_together(tmp_path, capfd, flags, message):
    program = ["-m", "experiments.train", "--config=experiments/configs/glyphs.py"]
    command = [*program, f"--workdir={tmp_path}/run", *flags]
    assert child_processes.run_all([(command, {})]) == [1]
    errors = capfd.readouterr().err
    (line,) = [row for row in errors.splitlines() if row.startswith("error: ")]
    assert message in line
    assert not (tmp_path / "run").exists()
