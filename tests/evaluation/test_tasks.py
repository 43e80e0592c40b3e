import pytest

from basic_tf.evaluation import prompts, tasks


def test_an_unknown_task_names_the_known_ones():
    with pytest.raises(ValueError, match="known: validation, serif, phosphor"):
        tasks.load_task("imagenet")


def test_every_task_names_templates_that_exist():
    for task in tasks.known_tasks().values():
        prompts.load_templates(task["templates"])


def test_the_classes_are_those_of_the_split(tmp_path, monkeypatch):
    known = tasks.known_tasks()
    known["digits"]["source"] = "tfds:glyphs/tiny:digits"
    monkeypatch.setattr(tasks, "known_tasks", lambda: known)
    task = tasks.load_task("digits", str(tmp_path))
    assert task.class_names[7] == "digit seven" and len(task.class_names) == 10
    for index, label in zip(task.examples.labels, task.labels, strict=True):
        assert task.examples.label_names[index] == task.class_names[label]
