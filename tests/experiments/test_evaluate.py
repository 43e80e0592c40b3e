"""The program on an untrained run and on tasks of folders."""

import json
import shutil

import pytest
import tiny_run
from absl import flags
from absl.testing import flagsaver

from basic_tf.data import example_table
from basic_tf.evaluation import evaluations
from experiments import evaluate
from tests.data.source_files import picture

COLORS = ["red", "green", "blue"]
TRAINING = {
    "seconds": 0.0,
    "examples_per_second": 0.0,
    "input_examples_per_second": 0.0,
    "cpu_utilization": 0.0,
    "peak_memory_mb": 1_000_000,  # more than this process takes
    "phases": {},
    "parameters": {"image_encoder": 1, "text_encoder": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run and the data and the file of two tasks."""
    folder = tmp_path_factory.mktemp("evaluate")
    (folder / "run").mkdir()
    tiny_run.write_untrained_run(folder / "run")
    (folder / "run/train.json").write_text(json.dumps(TRAINING))
    for color in COLORS:
        (folder / f"data/colors/{color}").mkdir(parents=True)
        for number in range(3):
            path = folder / f"data/colors/{color}/{number}.png"
            path.write_bytes(picture(color))
    (folder / "data/colors/red/broken.png").write_bytes(b"")
    template = {"source": "folder:colors", "templates": ["a {}"]}
    mine = {
        "mine": template,
        "probed": template | {"training": "folder:colors"},
        "pairs": {"source": "csv:pairs.csv", "metric": "recall_at_1"},
        "recalls": template | {"metric": "mean_per_class_recall"},
    }
    rows = [f"colors/{color}/0.png,a {color} square" for color in COLORS]
    (folder / "data/pairs.csv").write_text("\n".join(["image,caption", *rows]))
    (folder / "mine.json").write_text(json.dumps(mine))
    return folder


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """A function from flags to what the program prints on both streams."""
    monkeypatch.setattr(example_table, "refuse_bad", lambda *_: None)

    def call(**values):
        given = {
            "task_files": f"{folder}/mine.json",
            "data_dir": f"{folder}/data",
        } | {name: str(value) for name, value in values.items()}
        with flagsaver.as_parsed(**given):
            evaluate.main([])
        return capsys.readouterr()

    flags.FLAGS.mark_as_parsed()
    yield call
    flags.FLAGS.unparse_flags()


def test_tasks_are_listed_with_what_is_there(run):
    rows = {row["name"]: row for row in json.loads(run(list_tasks=True, json=True).out)}
    assert rows["mine"]["is_here"] and rows["serif"]["is_here"]
    assert not rows["pets"]["is_here"]
    assert rows["pets"]["source"] == "tfds:oxford_iiit_pet:test"
    assert rows["pets"]["metric"] == "mean_per_class_recall"
    lines = run(list_tasks=True).out.splitlines()
    assert len(lines) == len(rows)
    assert lines[-1].split() == ["recalls", "here", "mean_per_class_recall"] + [
        "folder:colors"
    ]


def test_a_finished_task_is_not_evaluated_again(run, folder, tmp_path, monkeypatch):
    arguments = {"workdir": folder / "run", "output": tmp_path, "tasks": "mine,recalls"}
    first = run(**arguments, batch_size=4)
    record = json.loads((tmp_path / "results/mine.json").read_text())
    assert record["metrics"]["num_examples"] == 9
    assert record["left_out"] == ["red/broken.png"]
    assert record["checkpoint"] == "step-00000000"
    assert "recalls: mean_per_class_recall" in first.out
    report = (tmp_path / "report.html").read_text()
    monkeypatch.setattr(evaluations.Evaluation, "run", None)  # it would be called
    second = run(**arguments, json=True)
    assert second.err.count("; evaluated before") == 2
    content = json.loads(second.out)["zero_shot"]
    assert content["mine"] == record["metrics"]
    assert (tmp_path / "report.html").read_text() == report


def test_every_kind_is_kept_by_its_name_and_shown(run, folder, tmp_path):
    names = ["pairs", "probed:linear_probe", "pairs:geometry"]
    arguments = {"workdir": folder / "run", "output": tmp_path}
    content = json.loads(run(**arguments, tasks=",".join(names), json=True).out)
    files = {path.name for path in (tmp_path / "results").glob("*.json")}
    assert files == {"pairs.json", "probed.linear_probe.json", "pairs.geometry.json"}
    assert content["retrieval"]["pairs"]["num_texts"] == 3
    assert content["retrieval"]["pairs"]["image_to_text_r5"] == 1.0
    assert content["geometry"]["pairs"]["num_pairs"] == 3
    probe = content["linear_probe"]["probed"]
    # A fifth of the nine training images holds the probe's choice of lambda.
    assert (probe["num_training"], probe["num_validation"]) == (8, 1)
    assert probe["top1"] == 1.0  # the test images are the training images
    assert len(list((tmp_path / "features").iterdir())) == 2  # each source once
    again = run(**arguments, tasks=",".join(names), json=True)
    assert again.err.count("; evaluated before") == 3
    assert json.loads(again.out)["linear_probe"] == content["linear_probe"]


def test_several_runs_and_checkpoints_are_in_one_report(run, folder, tmp_path):
    others = []
    for name in ("second", "third"):
        others.append(tmp_path / name)
        shutil.copytree(folder / "run", others[-1])
    for suffix in ("index", "data-00000-of-00001"):
        path = others[0] / f"checkpoints/step-00000000.{suffix}"
        shutil.copy(path, path.with_name(f"step-00000007.{suffix}"))
    with flagsaver.as_parsed(compare_workdir=[str(path) for path in others]):
        arguments = {"workdir": folder / "run", "tasks": "mine", "sweep": "checkpoints"}
        written = run(**arguments, output=tmp_path / "out", json=True)
    content = json.loads(written.out)
    top1 = content["zero_shot"]["mine"]["top1"]
    assert content["sweep"] == {"0": {"mine": top1}}
    assert content["second"]["sweep"] == {"0": {"mine": top1}, "7": {"mine": top1}}
    assert content["third"]["zero_shot"] == content["zero_shot"]
    assert "beside second, third" in (tmp_path / "out/report.html").read_text()


def test_a_result_of_other_prompts_is_kept(run, folder, tmp_path):
    arguments = {"workdir": folder / "run", "output": tmp_path, "tasks": "mine"}
    run(**arguments)
    before = (tmp_path / "results/mine.json").read_bytes()
    (tmp_path / "prompts").mkdir()
    names = {"mine": ["the sky", "grass", "blood"]}
    (tmp_path / "prompts/class_names.json").write_text(json.dumps(names))
    with pytest.raises(ValueError, match="of another imported_class_names_sha256 and"):
        run(**arguments, prompts=tmp_path / "prompts")
    assert (tmp_path / "results/mine.json").read_bytes() == before
    run(**arguments | {"output": tmp_path / "other"}, prompts=tmp_path / "prompts")
    record = json.loads((tmp_path / "other/results/mine.json").read_text())
    assert record["class_names"] == names["mine"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "--workdir is needed"),
        ({"tasks": ","}, "--tasks names no task"),
        ({"tasks": "mine,pet"}, "no task 'pet'; known: validation, serif"),
        ({"tasks": "mine,mscoco:linear_probe"}, "mscoco is a task of retrieval"),
        ({"tasks": "mine:probing"}, "no kind 'probing'; there are zero_shot, ret"),
        ({"tasks": "mine:linear_probe"}, "names no training source"),
        ({"tasks": "mine,pets"}, "pets: no data in"),
    ],
)
def test_a_mistake_is_said(run, folder, tmp_path, values, message):
    if values:
        values = {"workdir": folder / "run", "output": tmp_path} | values
    with pytest.raises(ValueError, match=message):
        run(**values)
