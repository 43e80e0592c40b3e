import pickle

import pytest

from basic_tf.data import tfds_source
from tests.data.source_files import image_bytes


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
