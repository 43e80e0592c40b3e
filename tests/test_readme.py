"""The commands of README's "Bring your own data" do what it says, on data like its."""

import concurrent.futures
import pathlib
import re
import shlex

import pytest
import tensorflow as tf

from basic_tf.data import tfrecord_source
from tests import child_processes
from tests.data.source_files import picture, write_tar

ROOT = pathlib.Path(__file__).parents[1]
SECTION = re.search(
    r"## Bring your own data\n(.*?)\n## ", (ROOT / "README.md").read_text(), re.S
)[1]
COMMANDS = [
    shlex.split(line)
    for block in re.findall(r"```bash\n(.*?)```", SECTION, re.S)
    for line in block.replace("\\\n", " ").splitlines()
]
*INSPECTIONS, TRAIN, _ = COMMANDS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data by the names that the section has; the ninth picture is missing."""
    folder = tmp_path_factory.mktemp("own data")
    rows, members = ["image,caption"], {}
    (folder / "shards").mkdir()
    (folder / "records").mkdir()
    with tf.io.TFRecordWriter(f"{folder}/records/0.tfrecord") as records:
        for number in range(1, 10):
            color, form = (("blue", "png"), ("red", "jpg"))[number % 2]
            path = folder / f"photos/{color}/{number}.{form}"
            rows.append(f'photos/{color}/{path.name},"{color}, number {number}"')
            if number == 9:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture(color, {"jpg": "JPEG", "png": "PNG"}[form]))
            members |= {path.name: path.read_bytes(), f"{number}.txt": color}
            records.write(tfrecord_source.to_record(path.read_bytes(), [color]))
    (folder / "pairs.csv").write_text("\n".join(rows))
    for shard in range(2):
        write_tar(folder / f"shards/{shard:05d}.tar", members)
    (folder / "experiments").symlink_to(ROOT / "experiments")
    return folder


def run(command, folder):
    """What a command ends with, whose paths are those of a folder."""
    paths = {"PYTHONPATH": str(ROOT), "TFDS_DATA_DIR": str(folder / "tfds")}
    return child_processes.run(command[1:], paths, folder)


def test_every_kind_of_source_is_inspected(folder):
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        processes = list(threads.map(lambda c: run(c, folder), INSPECTIONS))
    for command, process in zip(INSPECTIONS, processes, strict=True):
        assert process.returncode == 0, process.stderr
        assert re.search(r"^examples: [1-9]", process.stdout, re.M)
        assert "data:image/png" in (folder / command[-1]).read_text()
    kinds = {re.sub(r"^3\*.*", "mixture", c[3]).split(":")[0] for c in INSPECTIONS}
    assert kinds == {"csv", "folder", "webdataset", "tfrecord", "tfds", "mixture"}


def test_a_broken_example_stops_training_with_the_line_that_is_shown(folder):
    process = run(TRAIN, folder)
    assert process.returncode == 1
    (shown,) = re.findall(r"```\n(error: .*)\n```", SECTION)
    assert shown in process.stderr.splitlines()
