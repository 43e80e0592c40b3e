import pytest
import tensorflow as tf

from basic_tf.data import sources, tfrecord_source
from tests.data.source_files import image_bytes, picture, write_tar


def test_every_kind_of_source_gives_the_same_example(tmp_path):
    image = picture("red")
    (tmp_path / "images/red").mkdir(parents=True)
    (tmp_path / "images/red/0.png").write_bytes(image)
    (tmp_path / "pairs.csv").write_text("image,caption\nimages/red/0.png,red\n")
    write_tar(tmp_path / "0.tar", {"0.png": image, "0.txt": "red"})
    with tf.io.TFRecordWriter(str(tmp_path / "0.tfrecord")) as file:
        file.write(tfrecord_source.to_record(image, ["red"]))
    for source in (
        f"csv:{tmp_path}/pairs.csv",
        f"folder:{tmp_path}/images",
        f"tfrecord:{tmp_path}/*.tfrecord",
        f"webdataset:{tmp_path}/{{0..0}}.tar",
    ):
        examples = sources.load(source)
        assert image_bytes(examples) == [image]
        assert examples.captions == ["red"]


@pytest.mark.parametrize("source", ["glyphs", "csv:", "tfds:glyphs", "zip:x:y"])
def test_another_syntax_is_refused(source):
    with pytest.raises(ValueError, match="is none of tfds:NAME"):
        sources.load(source)
