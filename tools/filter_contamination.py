"""Lists the training images that look like an evaluation image (BASIC section 7.1).

Images are compared in gray at 32 x 32 pixels, the centre of the resized shorter side.
The folder of the results gets dropped.jsonl, summary.json and contact_sheet.html.

Examples:
  python -m tools.filter_contamination --training csv:pairs.csv \\
      --evaluation tfds:cifar10:test,tfds:glyphs:serif --output runs/contamination
  python -m tools.filter_contamination --training csv:pairs.csv \\
      --evaluation tfds:glyphs:digits --output runs/exact --exhaustive --json
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

from basic_tf import files
from basic_tf.data import contact_sheet, contamination, sources
from experiments import command_line

_TRAINING = flags.DEFINE_string("training", None, "Source of the training images.")
_EVALUATION = flags.DEFINE_list("evaluation", None, "Sources of evaluation images.")
_OUTPUT = flags.DEFINE_string("output", None, "Folder of the results.")
_DATA_DIR = flags.DEFINE_string("data_dir", None, "Where TFDS keeps its data sets.")
_THRESHOLD = flags.DEFINE_float(
    "threshold", contamination.THRESHOLD, "Structural similarity that is too much."
)
_EXHAUSTIVE = flags.DEFINE_boolean(
    "exhaustive", False, "Compare all pairs: misses none, and takes far longer."
)
_SHOWN = flags.DEFINE_integer("shown", 200, "Pairs on the contact sheet.", 0)
_JSON = flags.DEFINE_boolean("json", False, "Print the summary as JSON.")


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_OUTPUT.value)
    held, keys = contamination.load_evaluation(
        _EVALUATION.value, _DATA_DIR.value, _THRESHOLD.value, _EXHAUSTIVE.value
    )
    training = sources.load(_TRAINING.value, _DATA_DIR.value)
    dropped, shown, done = [], [], 0
    for batch in contamination.gray_batches(training):
        for match in held.find(batch):
            source, key = keys[match.evaluation_image]
            row = {
                "key": training.keys[done + match.image],
                "source": source,
                "match": key,
                "score": match.score,
            }
            dropped.append(row)
            if len(shown) < _SHOWN.value:
                pair = batch[match.image], held.images[match.evaluation_image]
                caption = f"{row['key']} | {source} {key}: {match.score:.3f}"
                shown.append((*pair, caption))
        done += len(batch)
        print(
            f"\r{done}/{len(training)} images, {len(dropped)} dropped",
            end="", file=sys.stderr, flush=True,
        )  # fmt: skip
    print(file=sys.stderr)
    _write(dropped, shown, held, len(training))


def _write(dropped, shown, held, count):
    folder = pathlib.Path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in dropped)
    files.write_whole(folder / "dropped.jsonl", lines)
    summary = {
        "training": _TRAINING.value,
        "evaluation": _EVALUATION.value,
        "threshold": held.threshold,
        "exhaustive": held.exhaustive,
        "training_images": count,
        "evaluation_images": len(held.images),
        "pairs_compared": held.num_compared,
        "dropped": len(dropped),
    }
    files.write_whole(folder / "summary.json", json.dumps(summary, indent=2))
    text = (
        f"{len(dropped)} of {count} training images have a structural similarity of "
        f"{held.threshold} or more with one of {len(held.images)} evaluation images."
    )
    sheet = contact_sheet.render("Training and evaluation images alike", text, shown)
    files.write_whole(folder / "contact_sheet.html", sheet)
    print(json.dumps(summary) if _JSON.value else f"{text} See {folder}.")


if __name__ == "__main__":
    flags.mark_flags_as_required(["training", "evaluation", "output"])
    command_line.run(main)
