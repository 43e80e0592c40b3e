import json

import pytest

from basic_tf.evaluation import task_files


def write(path, **tasks):
    path.write_text(json.dumps(tasks))
    return path


def test_a_task_of_ones_own_is_one_file(tmp_path):
    path = write(tmp_path / "mine.json", mine={"source": "folder:mine"})
    known = task_files.known_tasks([path])
    assert known["mine"] == {
        "source": "folder:mine",
        "metric": "top1",
        "templates": "photos",
    }
    assert known.keys() - {"mine"} == task_files.known_tasks().keys()


def test_a_folder_of_files_is_read_and_a_missing_one_named(tmp_path):
    write(tmp_path / "b.json", b={"source": "folder:b"})
    write(tmp_path / "a.json", a={"source": "folder:a", "templates": ["a {c}"]})
    (tmp_path / "notes.txt").write_text("no task")
    assert list(task_files.known_tasks([tmp_path]))[-2:] == ["a", "b"]
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        task_files.known_tasks([tmp_path / "none.json"])


def test_a_name_that_is_taken_is_refused(tmp_path):
    path = write(tmp_path / "mine.json", pets={"source": "folder:mine"})
    with pytest.raises(ValueError, match=r"mine\.json: there is a task 'pets' already"):
        task_files.known_tasks([path])


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ([], "task 'mine': an object with a source is needed"),
        ({"metric": "top1"}, "an object with a source is needed"),
        ({"source": 3}, "source cannot be 3"),
        ({"num_classes": True}, "num_classes cannot be True"),
        ({"only_present": "yes"}, "only_present cannot be 'yes'"),
        ({"sources": "x"}, "no field 'sources'; there are source, training"),
        ({"metric": "top3"}, "no metric 'top3'; there are top1, mean_per_class"),
        ({"templates": "letters"}, "no templates 'letters'"),
        ({"templates": ["no slot"]}, "needs exactly one slot"),
        ({"reading": "magic"}, "no reading 'magic'; there are voc, clevr_count"),
        ({"reading": "captions"}, "a reading is of a tfds: source"),
        ({"metric": "eleven_point_map"}, "goes with the reading voc alone"),
    ],
)
def test_another_form_is_refused(tmp_path, task, message):
    if isinstance(task, dict) and task != {"metric": "top1"}:
        task = {"source": "folder:mine"} | task
    path = write(tmp_path / "mine.json", mine=task)
    with pytest.raises(ValueError, match=r"mine\.json, task 'mine': ") as error:
        task_files.known_tasks([path])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not an object of a task for each name"),
        ('{"../x": {"source": "folder:x"}}', "a name of letters, digits and"),
    ],
)
def test_another_file_is_refused(tmp_path, content, message):
    (tmp_path / "mine.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        task_files.known_tasks([tmp_path / "mine.json"])
