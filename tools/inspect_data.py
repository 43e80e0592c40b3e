"""Says what a source of training data holds, and draws a sheet of random pairs.

All images are decoded. A source, or a mixture of them, is what `data.train` of an
experiment may be; see `basic_tf/data/sources.py`.

Examples:
  python -m tools.inspect_data csv:pairs.csv --output pairs.html
  python -m tools.inspect_data "webdataset:shards/{00000..00099}.tar" --json
  python -m tools.inspect_data "3*csv:pairs.csv + 1*folder:photos"
"""

import collections
import json
import os
import pathlib
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import jinja2
import numpy as np
import tensorflow as tf
from absl import flags

from basic_tf import data_uris, files
from basic_tf.data import batches, checking, example_table, mixture
from experiments import command_line

_DATA_DIR = flags.DEFINE_string("data_dir", None, "Where TFDS keeps its data sets.")
_OUTPUT = flags.DEFINE_string("output", None, "The sheet of pairs to write, HTML.")
_BAD = flags.DEFINE_string(
    "bad_examples", None, "Where to list all broken examples, JSON lines."
)
_JSON = flags.DEFINE_boolean("json", False, "Print one JSON object.")

NUM_PAIRS = 64
NUM_WORDS = 20
SHEET_SIZE = 128  # pixels of an image on the sheet
LENGTHS = (0, 1, 2, 3, 5, 9, 17, 33, 65, 129)  # where the bins of a histogram start
SIDES = (1, 32, 64, 128, 224, 256, 384, 512, 1024, 2048)

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ source }}</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; color: #1d2530 }
main { display: grid; gap: 1rem;
       grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)) }
figure { margin: 0; overflow-wrap: anywhere } img { background: #eee }
small { color: #5a6572 }
</style>
<h1>{{ source }}</h1>
<pre>{{ summary }}</pre>
<main>{% for pair in pairs %}
<figure><img alt="" width="{{ size }}" height="{{ size }}" src="{{ pair.image }}">
<figcaption>{% for text in pair.texts %}{{ text }}<br>{% endfor %}
<small>{{ pair.key }}{% if pair.labels %} ({{ pair.labels | join(", ") }}){% endif %}
</small></figcaption></figure>{% endfor %}
</main></html>
"""


def inspect(source, data_dir=None):
    """Reads a source and counts.

    Returns:
        `(examples, found)`: the `sources.Examples` that can be used, and a dictionary
        of numbers.

    Raises:
        ValueError: as `mixture.load`, and if no image can be decoded.
    """
    examples = mixture.load(source, data_dir)
    sizes = checking.image_sizes(examples)
    usable = sizes.all(axis=1)
    examples, sizes = checking.drop(examples, usable), sizes[usable]
    if not len(examples):
        raise ValueError(f"{source}: {example_table.describe(examples.bad)}")
    words = [re.findall(r"\w+", caption.lower()) for caption in examples.captions]
    common = collections.Counter(word for of_caption in words for word in of_caption)
    labels = collections.Counter(
        examples.label_names[i] for labels in examples.label_sets for i in labels
    )
    reasons = collections.Counter(bad.reason for bad in examples.bad)
    return examples, {
        "source": source,
        "examples": len(examples),
        "captions": len(examples.captions),
        "distinct_captions": len(set(examples.captions)),
        "empty_captions": sum(not caption.strip() for caption in examples.captions),
        "classes": len(labels),
        "broken": dict(reasons.most_common()),
        "words_a_caption": _histogram(
            [len(of_caption) for of_caption in words], LENGTHS
        ),
        "shorter_side": _histogram(sizes.min(axis=1), SIDES),
        "median_height_and_width": np.median(sizes, axis=0).tolist(),
        "common_words": dict(common.most_common(NUM_WORDS)),
        "common_labels": dict(labels.most_common(NUM_WORDS)),
    }


def _histogram(values, starts):
    """`{"4-7": how many values lie between}`, without the empty bins."""
    counts, _ = np.histogram(values, [*starts, np.inf])
    ends = [str(start - 1) for start in starts[1:]] + ["..."]
    names = [
        str(start) if str(start) == end else f"{start}-{end}"
        for start, end in zip(starts, ends, strict=True)
    ]
    pairs = zip(names, counts.tolist(), strict=True)
    return {name: count for name, count in pairs if count}


def _summary(found):
    lines = []
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {count}" for key, count in value.items())
        lines.append(f"{name.replace('_', ' ')}: {value if value != '' else 'none'}")
    return "\n".join(lines)


def _pairs(examples):
    """Random examples as the sheet shows them, always the same ones of a source."""
    load = batches.image_loader(examples, SHEET_SIZE)
    ends = np.cumsum(examples.caption_counts)
    chosen = np.random.default_rng(0).permutation(len(examples))[:NUM_PAIRS]
    for index in chosen:
        labels = examples.label_sets[index] if examples.label_sets else []
        yield {
            "image": data_uris.of_pixels(load(tf.constant(index))),
            "texts": examples.captions[ends[index - 1] if index else 0 : ends[index]],
            "labels": [examples.label_names[label] for label in labels],
            "key": examples.keys[index],
        }


def main(arguments):
    if len(arguments) != 1:
        raise ValueError("name one source, such as csv:pairs.csv; see --help")
    examples, found = inspect(arguments[0], _DATA_DIR.value)
    if _BAD.value:
        files.write_whole(_BAD.value, example_table.to_json_lines(examples.bad))
    if _OUTPUT.value:
        page = (
            jinja2.Environment(autoescape=True)
            .from_string(_PAGE)
            .render(
                source=arguments[0],
                summary=_summary(found),
                pairs=_pairs(examples),
                size=SHEET_SIZE,
            )
        )
        pathlib.Path(_OUTPUT.value).parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(_OUTPUT.value, page)
    print(json.dumps(found, indent=2) if _JSON.value else _summary(found))


if __name__ == "__main__":
    command_line.run(main)
