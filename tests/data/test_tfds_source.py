import io
import pickle

import pytest
import tensorflow_datasets as tfds

from basic_tf.data import tfds_source
from tests.data.source_files import image_bytes, picture

CAPTIONS = ["größer 🟥", "", "NA", "word " * 500, "nul \0 here", "café", "seven"]
PICTURES = {caption: picture((20 * i, 0, 0)) for i, caption in enumerate(CAPTIONS)}


class Postcards(tfds.core.GeneratorBasedBuilder):
    """Pictures with a caption, without labels."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        image, caption = tfds.features.Image(shape=(4, 4, 3)), tfds.features.Text()
        features = tfds.features.FeaturesDict({"image": image, "caption": caption})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        del dl_manager
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for caption, content in PICTURES.items():
            yield caption, {"image": io.BytesIO(content), "caption": caption}


@pytest.fixture(scope="module")
def postcards(tmp_path_factory):
    """A folder with the postcards in three files."""
    folder = tmp_path_factory.mktemp("postcards")
    files = tfds.download.DownloadConfig(num_shards=3)
    builder = tfds.builder("postcards", data_dir=folder)
    builder.download_and_prepare(download_config=files)
    return folder


@pytest.mark.parametrize("max_bytes", [0, 2**30])
def test_a_data_set_of_ones_own_is_read(postcards, monkeypatch, max_bytes):
    monkeypatch.setattr(tfds_source, "MAX_BYTES_IN_MEMORY", max_bytes)
    examples = tfds_source.load("postcards", "train", postcards)
    found = dict(zip(examples.captions, image_bytes(examples), strict=True))
    assert len(examples) == len(CAPTIONS) and found == PICTURES
    assert not examples.labels and not examples.label_names
    assert examples.keys[6] == "postcards:train 6"


def test_a_split_of_several_files_has_one_order(postcards, monkeypatch):
    whole = tfds_source.load("postcards", "train", postcards)
    part = tfds_source.load("postcards", "train[2:6]", postcards)
    assert part.captions == whole.captions[2:6]
    monkeypatch.setattr(tfds_source, "MAX_BYTES_IN_MEMORY", 0)
    on_demand = tfds_source.load("postcards", "train[2:6]", postcards)
    assert image_bytes(on_demand) == whole.images[2:6]
    assert len({on_demand.images.file_of(index) for index in range(4)}) > 1


def test_the_data_sets_of_tfds_are_read_with_their_classes(tmp_path):
    """By TFDS's own stand-in: its features, random pixels."""
    with tfds.testing.mock_data(num_examples=5, data_dir=str(tmp_path)):
        builder = tfds.builder("cats_vs_dogs")
        split = tfds.core.SplitInfo(name="train", shard_lengths=[5], num_bytes=0)
        builder.info.set_splits(tfds.core.splits.SplitDict([split]))
        builder.data_path.mkdir(parents=True)
        builder.info.write_to_directory(builder.data_path)
        for path in builder.info.splits["train"].filepaths:
            path.touch()
        examples = tfds_source.load("cats_vs_dogs", "train")
    names = examples.label_names
    assert names == ["cat", "dog"]
    assert examples.captions == [names[label] for label in examples.labels]
    assert examples.label_sets == [[label] for label in examples.labels]
    assert all(content.startswith(b"\x89PNG") for content in image_bytes(examples))
    assert len(set(examples.images)) == 5


def test_an_unknown_data_set_or_split_is_named(tmp_path):
    with pytest.raises(ValueError, match="no TFDS data set 'nothing_here'"):
        tfds_source.load("nothing_here", "train", tmp_path)
    with pytest.raises(ValueError, match="no split 'test'; it has train, validation"):
        tfds_source.load("glyphs/tiny", "test", tmp_path)


def test_a_split_may_be_sliced(tmp_path):
    whole = tfds_source.load("glyphs/tiny", "serif", tmp_path)
    part = tfds_source.load("glyphs/tiny", "serif[:25%]", tmp_path)
    assert part.captions == whole.captions[: len(whole) // 4]
    with pytest.raises(ValueError, match=r"no split 'serif\[oops\]'; it has"):
        tfds_source.load("glyphs/tiny", "serif[oops]", tmp_path)


@pytest.mark.parametrize("split", ["serif", "serif[5:25]", "serif+colors[:3]"])
def test_a_large_split_is_read_on_demand_and_the_same(tmp_path, monkeypatch, split):
    whole = tfds_source.load("glyphs/tiny", split, tmp_path)
    monkeypatch.setattr(tfds_source, "MAX_BYTES_IN_MEMORY", 0)
    on_demand = tfds_source.load("glyphs/tiny", split, tmp_path)
    assert on_demand.images.file_of(0).endswith(".tfrecord-00000-of-00001")
    assert image_bytes(on_demand) == whole.images
    sent = pickle.loads(pickle.dumps(on_demand))  # as to a worker
    assert image_bytes(sent) == whole.images
    assert on_demand.captions == whole.captions
    assert on_demand.label_sets == whole.label_sets
    assert on_demand.keys == whole.keys
