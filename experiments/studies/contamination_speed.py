"""Speed and recall of the search for training images that look like evaluation images.

Crops of scikit-image's photographs, of other photographs for training than for
evaluation; a fifth of the training images are changed evaluation images. One thread;
decoding is not counted. `missed` is of the images that a comparison of all pairs finds.

Example:
  python -m experiments.studies.contamination_speed --output runs/contamination --quick
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np
import skimage.data
from matplotlib import figure
from PIL import Image

from basic_tf.data import contamination, ssim
from experiments.studies import fresh_process, page

EVALUATION = ("astronaut", "coffee", "chelsea")
TRAINING = ("camera", "rocket", "coins", "moon")
BATCH = 256
CHECKED = 40  # images whose pairs are all compared


def main(output, quick):
    sizes = [(512, 1000), (512, 2000)] if quick else [(4096, 1000), (4096, 10_000)]
    sizes += [] if quick else [(16_384, 10_000), (4096, 40_000)]
    rows = [
        fresh_process.measure({"training_images": images, "evaluation_images": others})
        for images, others in sizes
    ]
    page.write(
        output, "The search for contamination", _summary(rows), rows, [_plot(rows)]
    )
    print(_summary(rows))


def _measure(training_images, evaluation_images):
    rng = np.random.default_rng(0)
    evaluation = _crops(EVALUATION, evaluation_images, rng)
    training = _crops(TRAINING, training_images, rng)
    copied = rng.integers(evaluation_images, size=len(training[::5]))
    training[::5] = _change(evaluation[copied], rng)
    start = time.process_time()
    held = contamination.EvaluationImages(evaluation)
    prepared = time.process_time()
    found = set()
    for first in range(0, training_images, BATCH):
        matches = held.find(training[first : first + BATCH])
        found |= {first + match.image for match in matches}
    seconds = time.process_time() - prepared
    whole = contamination.EvaluationImages(evaluation[:2000], exhaustive=True)
    expected = {match.image for match in whole.find(training[:CHECKED])}
    return {
        "images_per_cpu_second": round(training_images / seconds),
        "preparation_cpu_seconds": round(prepared - start, 1),
        "candidates": held.num_compared,
        "found": len(found),
        "checked": CHECKED,
        "missed": len(expected - found),
    }


def _crops(names, count, rng):
    """`[count, 32, 32]` of random places and sizes, some mirrored."""
    photographs = [
        Image.fromarray(getattr(skimage.data, name)()).convert("L") for name in names
    ]
    crops = np.empty((count, ssim.IMAGE_SIZE, ssim.IMAGE_SIZE), np.float32)
    for crop in crops:
        photograph = photographs[rng.integers(len(photographs))]
        side = int(np.exp(rng.uniform(np.log(48), np.log(min(photograph.size)))))
        left, top = (int(rng.integers(s - side + 1)) for s in photograph.size)
        box = (left, top, left + side, top + side)
        crop[:] = np.asarray(photograph.resize(crop.shape, box=box)) / np.float32(255)
        if rng.random() < 0.5:
            crop[:] = crop[:, ::-1].copy()
    return crops


def _change(images, rng):
    """Noise, another brightness and contrast."""
    count = (len(images), 1, 1)
    noise = rng.normal(size=images.shape) * rng.uniform(0, 0.1, count)
    gain, offset = rng.uniform(0.5, 1.2, count), rng.uniform(-0.1, 0.1, count)
    return np.clip(images * gain + offset + noise, 0, 1)


def _summary(rows):
    sentences = [
        f"{row['training_images']} against {row['evaluation_images']} evaluation "
        f"images: {row['images_per_cpu_second']} images a processor second, "
        f"{row['candidates'] / row['training_images']:.1f} pairs compared an image, "
        f"{row['found']} found, {row['missed']} missed of {row['checked']} checked."
        for row in rows
    ]
    return " ".join(sentences)


def _plot(rows):
    plot = figure.Figure(figsize=(5, 3))
    axes = plot.subplots()
    ordered = sorted(rows, key=lambda row: row["evaluation_images"])
    axes.loglog(
        [row["evaluation_images"] for row in ordered],
        [row["images_per_cpu_second"] for row in ordered],
        "o-",
    )
    axes.set_xlabel("evaluation images")
    axes.set_ylabel("training images a processor second")
    return plot


if __name__ == "__main__":
    fresh_process.run(main, _measure)
