import pytest

from basic_tf.evaluation import class_names, prompt_sets

LABELS = ["airplane", "big_cat", "SeaLake"]


def imported(*names, task="set"):
    return prompt_sets.PromptSets(class_names={task: list(names)})


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("british_shorthair", "british shorthair"),
        ("AnnualCrop", "Annual Crop"),
        ("HandstandPushups", "Handstand Pushups"),
        ("/c/cabin/outdoor", "cabin outdoor"),
        ("McLaren MP4-12C Coupe 2012", "McLaren MP4-12C Coupe 2012"),
        ("MD-11", "MD-11"),
        ("colt's foot", "colt's foot"),
        ("digit seven", "digit seven"),
        ("7", "7"),
    ],
)
def test_a_label_becomes_words(label, words):
    assert class_names.tidy(label) == words


def test_names_are_imported_else_the_tasks_else_the_labels():
    task = {"class_names": ["a", "b", "c"]}
    assert class_names.choose("set", {}, LABELS) == ["airplane", "big cat", "Sea Lake"]
    assert class_names.choose("set", task, LABELS) == ["a", "b", "c"]
    names = ["{}, 100 %", "b_b", "ü"]
    assert class_names.choose("set", task, LABELS, imported(*names)) == names
    other = imported(*names, task="other")
    assert class_names.choose("set", task, LABELS, other) == ["a", "b", "c"]
    task["imported_names"] = "other"
    assert class_names.choose("set", task, LABELS, other) == names


def test_another_number_of_names_is_refused():
    with pytest.raises(ValueError, match="set: 2 class names for 3 classes"):
        class_names.choose("set", {}, LABELS, imported("x", "y"))


def test_imported_names_in_another_order_are_refused():
    with pytest.raises(ValueError, match="'Big cat' is name 0 and label 1"):
        class_names.choose("set", {}, LABELS, imported("Big cat", "lake", "plane"))
    right = ["a plane", "BIG-CAT", "lake or sea"]
    assert class_names.choose("set", {}, LABELS, imported(*right)) == right


def test_labels_that_say_nothing_need_other_names():
    task = {"opaque_labels": True}
    with pytest.raises(ValueError, match="called 00, 01 and so on; import names for"):
        class_names.choose("set", task, ["00", "01"])


def test_wordnet_ids_are_imagenets_in_order():
    ids = class_names.wordnet_ids()
    assert len(ids) == 1000 and ids == sorted(ids)
    assert class_names.wordnet_places([ids[9], ids[2]]).tolist() == [9, 2]
    with pytest.raises(ValueError, match="not among ImageNet's classes: n00000000"):
        class_names.wordnet_places([ids[0], "n00000000"])
