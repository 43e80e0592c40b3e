import pytest

from basic_tf.evaluation import evaluations, task_files, task_metrics

SEVERAL = {
    "source": "folder:a",
    "training": "folder:b",
    "metric": task_metrics.MULTI_LABEL,
}
SETTING = evaluations.Setting(task_files.known_tasks() | {"several": SEVERAL})


@pytest.mark.parametrize(
    ("name", "task", "kind"),
    [
        ("serif", "serif", "zero_shot"),
        ("mscoco", "mscoco", "retrieval"),
        ("mscoco:geometry", "mscoco", "geometry"),
        ("cifar10:linear_probe", "cifar10", "linear_probe"),
        ("serif:retrieval", "serif", "retrieval"),
    ],
)
def test_a_task_has_its_own_kind_or_the_one_that_is_asked_for(name, task, kind):
    parsed = evaluations.parse(name, SETTING)
    assert (parsed.name, parsed.task, parsed.kind) == (name, task, kind)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("serif:probe", "serif:probe: no kind 'probe'; there are zero_shot, retrieval"),
        ("mscoco:zero_shot", "mscoco is a task of retrieval, it has no classes"),
        ("serif:linear_probe", "names no training source for a probe"),
        ("several:linear_probe", "a probe is of one label an image, several of sev"),
    ],
)
def test_a_kind_that_does_not_fit_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        evaluations.parse(name, SETTING)


def test_a_probe_needs_the_data_that_it_learns_from(tmp_path):
    (tmp_path / "judged/a").mkdir(parents=True)
    (tmp_path / "judged/a/0.png").touch()
    fields = {"source": "folder:judged", "training": "folder:learnt", "metric": "top1"}
    setting = evaluations.Setting({"mine": fields}, tmp_path)
    evaluations.parse("mine", setting).require_data()
    with pytest.raises(ValueError, match="learnt"):
        evaluations.parse("mine:linear_probe", setting).require_data()
