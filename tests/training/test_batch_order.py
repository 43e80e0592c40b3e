"""Batches are the same bytes on any threads, after a resume, and over machines."""

import functools
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from basic_tf.data import batches, mixture, sources, tfrecord_source, tokenizer
from basic_tf.models import zoo
from basic_tf.training import distribution, phases
from tests.data.image_files import encode, smooth
from tests.data.source_files import write_tar

CAPTIONS = [[f"picture {n}", f"number {n} of twenty"] for n in range(20)]
MODEL = tokenizer.train([text for texts in CAPTIONS for text in texts], 60)


@pytest.fixture(scope="module")
def source_of(tmp_path_factory):
    """Twenty photographs of two captions in each kind of source, and a mixture."""
    folder = tmp_path_factory.mktemp("pairs")
    photographs = [encode(smooth(40 + n, 50), "JPEG", quality=80) for n in range(20)]
    rows, members = ["image,one,two"], {}
    with tf.io.TFRecordWriter(f"{folder}/pairs.tfrecord") as records:
        for n, photograph in enumerate(photographs):
            (folder / f"{n}.jpg").write_bytes(photograph)
            rows.append(f"{n}.jpg,{','.join(CAPTIONS[n])}")
            fields = json.dumps({"caption": CAPTIONS[n]})
            members |= {f"{n}.jpg": photograph, f"{n}.json": fields}
            records.write(tfrecord_source.to_record(photograph, CAPTIONS[n]))
            (folder / f"classes/{n % 3}").mkdir(parents=True, exist_ok=True)
            (folder / f"classes/{n % 3}/{n}.jpg").write_bytes(photograph)
    (folder / "pairs.csv").write_text("\n".join(rows))
    write_tar(folder / "pairs.tar", members)
    archive = f"webdataset:{folder}/pairs.tar"
    return {
        "csv": f"csv:{folder}/pairs.csv?caption=one&caption=two",
        "webdataset": archive,
        "tfrecord": f"tfrecord:{folder}/pairs.tfrecord",
        "mixture": [(archive, 3), (f"folder:{folder}/classes", 1)],
    }


@pytest.fixture(scope="module")
def phase_of(source_of):
    """A contrastive phase of batches of eight, by the kind of its source."""
    config = tiny_run.tiny_config("")
    pieces = tokenizer.Tokenizer(MODEL, 16)
    model = zoo.build(config.model.to_dict(), pieces.vocabulary_size)
    config.phases.joint.batch_size = 8

    @functools.cache
    def make(kind):
        examples = mixture.load(source_of[kind])
        joint = config.phases.joint
        return phases.make_phase("joint", joint, model, examples, pieces, 32, 3)

    return make


def batch_bytes(phase, first_step, last_step, num_threads=4):
    options = tf.data.Options()
    options.threading.private_threadpool_size = num_threads
    dataset = phase.make_batches(first_step, last_step).with_options(options)
    return [
        {name: values.tobytes() for name, values in batch.items()}
        for batch in dataset.as_numpy_iterator()
    ]


@pytest.mark.parametrize("kind", ["csv", "webdataset", "tfrecord", "mixture"])
def test_batches_depend_on_neither_threads_nor_a_resume(phase_of, kind):
    whole = batch_bytes(phase_of(kind), 0, 7, num_threads=1)
    assert batch_bytes(phase_of(kind), 0, 7, num_threads=4) == whole
    assert batch_bytes(phase_of(kind), 5, 7, num_threads=4) == whole[5:]
    assert len({batch["image"] for batch in whole}) == 7


def test_the_same_pairs_are_the_same_batches_from_every_kind_of_source(phase_of):
    table, archive, records = (
        batch_bytes(phase_of(kind), 0, 3) for kind in ("csv", "webdataset", "tfrecord")
    )
    assert table == archive == records


class Machine:
    """What one of several machines of a strategy sees of it."""

    def __init__(self, index, num_machines, replicas_each):
        self.num_replicas_in_sync = num_machines * replicas_each
        self.context = tf.distribute.InputContext(
            num_machines, index, self.num_replicas_in_sync
        )

    def distribute_datasets_from_function(self, make):
        return make(self.context)


@pytest.mark.parametrize(("num_machines", "replicas_each"), [(2, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("groups", [[(24, 1.0)], [(16, 2.0), (8, 1.0)]])
def test_machines_see_every_example_of_an_epoch_once(
    monkeypatch, groups, num_machines, replicas_each
):
    sizes = [size for size, _ in groups]
    examples = sources.Examples(
        [b""] * 24,
        [""] * 24,
        origins=np.repeat(range(len(groups)), sizes),
        weights=tuple(weight for _, weight in groups),
    )
    config = tiny_run.tiny_config("").phases.joint
    config.batch_size = 12
    # Stands for the frozen embeddings of images: the number of the example.
    fields = {"image_embedding": batches.row_loader(np.arange(24))}
    make_parts = functools.partial(
        phases._make_parts, config, examples, fields, 32, 7, 0, 4
    )
    whole = [batch["image_embedding"].numpy() for batch in make_parts(1, (0,))]
    parts = []
    for index in range(num_machines):
        machine = functools.partial(Machine, index, num_machines, replicas_each)
        monkeypatch.setattr(tf.distribute, "get_strategy", machine)
        dataset = distribution.distribute_batches(make_parts)
        steps = itertools.islice(dataset, 4 * replicas_each)
        rows = [batch["image_embedding"].numpy() for batch in steps]
        parts.append(np.reshape(rows, [4, -1]))
    together = np.concatenate(parts, axis=1)
    np.testing.assert_array_equal(together, whole)
    for epoch in (together[:2], together[2:]):
        assert sorted(epoch.ravel()) == list(range(24))
