"""Every task of the papers, on miniature data in the format of the real ones."""

import numpy as np
import pytest

from basic_tf.data import decoding
from basic_tf.evaluation import prompt_sets, task_data, task_files, tasks, zero_shot
from tests.evaluation import miniature_data

TASKS = task_files.read(task_files.FILES[1])
IMAGENET = prompt_sets.PromptSets(
    class_names={
        "imagenet1k": [f"name {index}" for index in range(1000)],
        "country211": [f"country {index}" for index in range(211)],
    }
)


def classify(task, seed=0):
    """The result of made-up embeddings."""
    generator = np.random.default_rng(seed)
    embeddings, weights = (
        generator.normal(size=(count, 4)).astype(np.float32)
        for count in (len(task.examples), len(task.class_names))
    )
    return zero_shot.classify(task, embeddings, weights)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_read_and_evaluated(name, tmp_path):
    fields = TASKS[name]
    expected = fields.get("num_classes", 3)
    assert not task_data.is_here(fields["source"], tmp_path)
    miniature_data.write(fields, tmp_path, expected)
    assert task_data.is_here(fields["source"], tmp_path)
    task = tasks.load_task(name, str(tmp_path), TASKS, IMAGENET)
    if task.metric == "recall_at_1":
        assert set(task.examples.caption_counts) <= {3, 4, 5}
        assert len(task.examples.captions) == task.examples.caption_counts.sum()
        return
    assert "num_classes" not in fields or len(task.class_names) == expected
    found = classify(task).metrics
    assert found["metric"] == fields["metric"]
    low, high = found["interval"]
    assert 0 <= low <= found["value"] <= high <= 1
    assert found["num_examples"] == len(task.examples) > 0


def load(name, folder, num_classes=10):
    miniature_data.write(TASKS[name], folder, num_classes)
    return tasks.load_task(name, str(folder), TASKS, IMAGENET)


@pytest.mark.parametrize("name", ["imagenet_a", "imagenet_r", "imagenet_o"])
def test_subsets_of_imagenet_have_the_names_of_their_classes(name, tmp_path):
    task = load(name, tmp_path, 200)
    assert task.class_names == [f"name {index}" for index in range(0, 1000, 5)]
    assert sorted(task.labels) == list(range(200))


def test_a_subset_that_is_not_whole_is_refused(tmp_path):
    with pytest.raises(ValueError, match="100 classes occur and there should be 200"):
        load("imagenet_a", tmp_path, 100)


def test_names_of_imagenets_classes_have_to_be_imported(tmp_path):
    miniature_data.write(TASKS["imagenet"], tmp_path, 10)
    with pytest.raises(ValueError, match="called n01440764, n15075141 and so on; impo"):
        tasks.load_task("imagenet", str(tmp_path), TASKS)


def test_objectnet_keeps_the_classes_that_imagenet_has(tmp_path):
    task = load("objectnet", tmp_path, 113)
    assert task.class_names == [f"Class {index:03d}" for index in range(113)]
    assert len(task.examples) == 113


def test_clevr_counts_objects(tmp_path):
    task = load("clevr_count", tmp_path)
    names = [task.class_names[label] for label in task.labels]
    counts = "three four five six seven eight nine ten three four".split()
    assert sorted(names) == sorted(counts)


def test_the_middle_frame_of_a_video_is_classified(tmp_path):
    task = load("ucf101", tmp_path)
    read = task.examples.images.reader()
    pixels = decoding.decode_image(read(0)).numpy()
    np.testing.assert_allclose(pixels, 60 / 255, atol=2 / 255)  # of 0, 30, 60, 90, 120


def test_what_is_missing_is_said_in_a_line(tmp_path):
    with pytest.raises(ValueError) as error:
        tasks.load_task("voc2007", str(tmp_path), TASKS)
    assert str(error.value) == (
        f"voc2007: no data in {tmp_path}; "
        f"prepare them with: tfds build voc/2007 --data_dir {tmp_path}"
    )
    with pytest.raises(ValueError, match=r"put ILSVRC2012_img_val|get ILSVRC2012_img_"):
        tasks.load_task("imagenet", str(tmp_path), TASKS)
    with pytest.raises(ValueError, match=r"gtsrb/test; get GTSRB_Final_Test_Images"):
        tasks.load_task("gtsrb", str(tmp_path), TASKS)


def test_every_set_of_the_papers_is_there():
    names = {name.replace("_", "") for name in TASKS}
    wanted = (
        "birdsnap caltech101 cifar10 cifar100 dtd eurosat fgvcaircraft flowers102 "
        "food101 imagenet imageneta imagenetr imagenetv2 imagenetsketch imageneto "
        "objectnet mnist pets pcam resisc45 stl10 sun397 ucf101 voc2007 cars "
        "country211 gtsrb svhn renderedsst2 clevrcount clevrdistance kittidistance "
        "flickr30k mscoco"
    )
    assert names == set(wanted.split())
    by_recall = {n for n, t in TASKS.items() if t["metric"] == "mean_per_class_recall"}
    assert by_recall == {"caltech101", "flowers102", "pets", "fgvc_aircraft"}


def test_a_probe_learns_and_is_tuned_on_other_splits_than_it_is_judged_by():
    probed = {name: fields for name, fields in TASKS.items() if "training" in fields}
    assert len(probed) == 25
    for fields in probed.values():
        splits = [
            fields[k] for k in ("source", "training", "validation") if k in fields
        ]
        assert len(set(splits)) == len(splits)
        if splits[0].startswith("tfds:"):
            assert len({split.split(":")[1] for split in splits}) == 1
        else:
            assert len({split.rpartition("/")[0] for split in splits}) == 1
