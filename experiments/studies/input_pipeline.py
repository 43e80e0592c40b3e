"""Images a processor second: decoded, also resized, and by all that training reads.

Photographs of 375 x 500 pixels, JPEG, crops of scikit-image's; the images are of 224
pixels. `decode` and `decode_resize` (by the random crop of training) read files from
memory; `whole_pipeline` reads what a source's files hold by the code of a training run:
images, captions, tokens, batches. `memory` is the growth of the process, after the
first tenth of the examples, over small images.

Example:
  python -m experiments.studies.input_pipeline --output runs/input_pipeline --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import io
import pathlib
import tarfile
import tempfile
import time

import numpy as np
import skimage.data
import tensorflow as tf
from matplotlib import figure
from PIL import Image

from basic_tf import memory
from basic_tf.data import (
    augmentation,
    batches,
    decoding,
    example_order,
    tfrecord_source,
)
from basic_tf.training import run_data
from experiments.configs import pairs
from experiments.studies import fresh_process, page

DECODE, DECODE_RESIZE, WHOLE = "decode", "decode_resize", "whole_pipeline"
MEMORY = "memory"
PHOTOGRAPHS = ("astronaut", "coffee", "chelsea", "rocket")
WORDS = "a photo of two red blue small old house cat on the near under it with".split()
BATCH = 64
GOAL = 0.8  # of decode_resize


def main(output, quick):
    cases = [(DECODE, "files in memory"), (DECODE_RESIZE, "files in memory")]
    cases += [(WHOLE, source) for source in SOURCES]
    examples = {MEMORY: 10_240 if quick else 100_032}
    rows = [
        fresh_process.measure(
            {
                "stage": stage,
                "source": source,
                "examples": examples.get(stage, 1024 if quick else 8192),
            }
        )
        for stage, source in [*cases, (MEMORY, "tfrecord")]
    ]
    page.write(output, "The input pipeline", _summary(rows), rows, [_plot(rows)])
    print(_summary(rows))


def _measure(stage, source, examples):
    rng = np.random.default_rng(0)
    size, image_size, num_files = ((500, 375), 224, 256)
    if stage == MEMORY:
        size, image_size, num_files = ((100, 75), 32, 10_240)
    photographs = _photographs(size, 256, rng)
    with tempfile.TemporaryDirectory() as folder:
        if stage in (WHOLE, MEMORY):
            captions = [" ".join(rng.choice(WORDS, 12)) for _ in range(num_files)]
            files = [photographs[i % len(photographs)] for i in range(num_files)]
            location = SOURCES[source](pathlib.Path(folder), files, captions)
            dataset = _whole(f"{source}:{location}", image_size, examples, folder)
        else:
            dataset = _of_memory(photographs, image_size, examples, stage)
        return _read(dataset, examples)


def _read(dataset, examples):
    """What reading all batches takes; the memory, from a tenth of them on."""
    start, before = time.process_time(), 0
    for number, _ in enumerate(dataset):
        if number == examples // BATCH // 10:
            before = memory.forget_peak()
    return {
        "images_per_cpu_second": round(examples / (time.process_time() - start), 1),
        "memory_growth_mb": memory.peak_memory_mb() - before,
    }


def _photographs(size, count, rng):
    """`count` JPEG files of random places, of width and height `size`."""
    sources = [Image.fromarray(getattr(skimage.data, name)()) for name in PHOTOGRAPHS]
    files = []
    for index in range(count):
        source = sources[index % len(sources)]
        scale = rng.uniform(0.5, 1) * min(np.divide(source.size, size))
        sides = np.multiply(size, scale)
        start = rng.uniform(0, np.subtract(source.size, sides))
        picture = source.resize(
            size, Image.Resampling.BICUBIC, box=(*start, *(start + sides))
        )
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=90)
        files.append(content.getvalue())
    return files


def _of_memory(files, image_size, examples, stage):
    files = tf.constant(files)

    def load(index):
        image = decoding.decode_image(tf.gather(files, index % len(files)))
        if stage == DECODE_RESIZE:
            image = augmentation.of_image(image, 0, index, image_size, {"crop": {}})
        return image[0, 0, 0]

    dataset = tf.data.Dataset.range(examples)
    dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).prefetch(4)


def _whole(source, image_size, examples, folder):
    """The batches of a training run on one's own pairs."""
    config = pairs.get_config("csv:-")
    config.data.train = source
    config.model.image_encoder.image_size = image_size
    found, tokenizer = run_data.load(config, pathlib.Path(folder))
    steps = example_order.mixed_indices(found.groups(), BATCH, 0, examples // BATCH, 0)
    images = batches.training_images(
        found, image_size, steps, 0, config.phases.joint.augmentation.to_dict()
    )
    captions = batches.row_loader(found.captions)
    fields = {"token_ids": lambda step, rows: tokenizer(captions(step, rows))}
    return batches.training_batches(steps, fields, images)


def _write_tfrecord(folder, files, captions):
    with tf.io.TFRecordWriter(str(folder / "0.tfrecord")) as writer:
        for file, caption in zip(files, captions, strict=True):
            writer.write(tfrecord_source.to_record(file, [caption]))
    return folder / "*.tfrecord"


def _write_webdataset(folder, files, captions):
    with tarfile.open(folder / "0.tar", "w") as archive:
        for number, pair in enumerate(zip(files, captions, strict=True)):
            for content, extension in zip(pair, ("jpg", "txt"), strict=True):
                content = content if extension == "jpg" else content.encode()
                member = tarfile.TarInfo(f"{number:05d}.{extension}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return folder / "*.tar"


def _write_csv(folder, files, captions):
    rows = ["image,caption"]
    for number, (file, caption) in enumerate(zip(files, captions, strict=True)):
        (folder / f"{number}.jpg").write_bytes(file)
        rows.append(f"{number}.jpg,{caption}")
    (folder / "pairs.csv").write_text("\n".join(rows))
    return folder / "pairs.csv"


def _write_folder(folder, files, captions):
    for number, (file, caption) in enumerate(zip(files, captions, strict=True)):
        of_class = folder / "classes" / caption.split()[-1]  # as many as `WORDS`
        of_class.mkdir(parents=True, exist_ok=True)
        (of_class / f"{number}.jpg").write_bytes(file)
    return folder / "classes"


SOURCES = {
    "tfrecord": _write_tfrecord,
    "webdataset": _write_webdataset,
    "csv": _write_csv,
    "folder": _write_folder,
}


def _summary(rows):
    speeds = {row["stage"]: row["images_per_cpu_second"] for row in rows[:2]}
    sentences = [
        f"A 375 x 500 JPEG: {speeds[DECODE]:.0f} images a processor second decoded, "
        f"{speeds[DECODE_RESIZE]:.0f} decoded, cropped and resized to 224."
    ]
    for row in rows:
        if row["stage"] == WHOLE:
            share = row["images_per_cpu_second"] / speeds[DECODE_RESIZE]
            verdict = "at" if share >= GOAL else "below"
            sentences.append(
                f"The whole pipeline from {row['source']} makes {share:.2f} of that, "
                f"{verdict} the goal of {GOAL}."
            )
        if row["stage"] == MEMORY:
            sentences.append(
                f"Over {row['examples']} examples the process grew by "
                f"{row['memory_growth_mb']} MB."
            )
    return " ".join(sentences)


def _plot(rows):
    plot = figure.Figure(figsize=(7, 3))
    axes = plot.subplots()
    rows = [row for row in rows if row["stage"] != MEMORY][::-1]
    axes.barh(
        [f"{row['stage']}, {row['source']}" for row in rows],
        [row["images_per_cpu_second"] for row in rows],
    )
    axes.set_xlabel("images a processor second")
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
