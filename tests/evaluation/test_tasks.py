import pytest

from basic_tf.evaluation import prompt_sets, task_files, tasks
from tests.data.source_files import picture


def write_folder(folder, **files):
    """Images of classes: `{class: number of images}`."""
    for name, count in files.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            (folder / name / f"{number}.png").write_bytes(picture("red"))


def load(folder, prompts=None, **fields):
    known = {"mine": {"source": "folder:mine", "metric": "top1", "templates": ["{}"]}}
    return tasks.load_task("mine", folder, {"mine": known["mine"] | fields}, prompts)


def test_an_unknown_task_names_the_known_ones():
    with pytest.raises(ValueError, match="known: validation, serif, phosphor"):
        tasks.load_task("imagenet_z")


def test_the_classes_of_our_tasks_are_those_of_the_split(tmp_path):
    known = task_files.known_tasks()
    known["digits"]["source"] = "tfds:glyphs/tiny:digits"
    task = tasks.load_task("digits", str(tmp_path), known)
    assert task.class_names[7] == "digit seven" and len(task.class_names) == 10
    for index, label in zip(task.examples.labels, task.labels, strict=True):
        assert task.examples.label_names[index] == task.class_names[label]


def test_a_folder_is_a_task_with_the_names_of_its_classes(tmp_path):
    write_folder(tmp_path / "mine", big_cat=2, dog=1)
    task = load(tmp_path)
    assert task.class_names == ["big cat", "dog"]
    assert task.labels.tolist() == [0, 0, 1]


def test_imported_prompts_go_before_the_tasks_own(tmp_path):
    write_folder(tmp_path / "mine", a=1, b=1)
    prompts = prompt_sets.PromptSets({"mine": ["x {c}"]}, {"mine": ["one", "two"]})
    task = load(tmp_path, prompts)
    assert (task.templates, task.class_names) == (["x {c}"], ["one", "two"])
    other = load(tmp_path, prompts, imported_names="x", imported_templates="x")
    assert (other.templates, other.class_names) == (["{}"], ["a", "b"])


def test_a_broken_image_is_left_out_and_too_many_are_refused(tmp_path):
    write_folder(tmp_path / "mine", a=100, b=50)
    (tmp_path / "mine/a/7.png").write_bytes(b"no image")
    task = load(tmp_path)
    assert len(task.labels) == 149
    assert [bad.key for bad in task.examples.bad] == ["a/7.png"]
    fields = {"source": "folder:mine"}
    left_out = [bad.key for bad in task.examples.bad]
    again = tasks.load_examples(fields, left_out, tmp_path)
    assert again.keys == task.examples.keys
    for number in range(3):
        (tmp_path / f"mine/b/{number}.png").write_bytes(b"")
    with pytest.raises(ValueError, match="4 of 150 examples are broken"):
        load(tmp_path)


def test_examples_without_a_label_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("image,caption,label\n0.png,x,cat\n0.png,y,\n")
    (tmp_path / "0.png").write_bytes(picture("red"))
    with pytest.raises(ValueError, match="mine: 1 of 2 examples have no label"):
        load(tmp_path, source="csv:a.csv")


def test_another_number_of_classes_is_refused(tmp_path):
    write_folder(tmp_path / "mine", a=1, b=1)
    with pytest.raises(ValueError, match="2 classes occur and there should be 3"):
        load(tmp_path, num_classes=3)


def test_a_file_that_should_come_with_the_data_is_named(tmp_path):
    write_folder(tmp_path / "mine", a=1)
    with pytest.raises(FileNotFoundError, match=r"kept\.json, which comes with"):
        load(tmp_path, keep="kept.json")
    (tmp_path / "names.json").write_text('{"b": "bee"}')
    with pytest.raises(ValueError, match=r"names\.json does not name a"):
        load(tmp_path, rename="names.json")
