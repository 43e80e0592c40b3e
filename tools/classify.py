"""Classifies image files with an exported SavedModel; needs only tensorflow(_text).

Examples:
  python -m tools.classify --saved_model runs/demo/saved_model photo.png
  python -m tools.classify --saved_model runs/demo/saved_model --json \\
      --labels "home,heart,lock" a.png b.jpg
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import app, flags

_SAVED_MODEL = flags.DEFINE_string("saved_model", None, "Folder of the SavedModel.")
_LABELS = flags.DEFINE_list(
    "labels", None, "Names to choose from, with commas between."
)
_TOP = flags.DEFINE_integer("top", 5, "Rows to print for each file.", lower_bound=1)
_JSON = flags.DEFINE_boolean("json", False, "Print one JSON object a file.")


def read_image(path):
    """The bytes of a file, or a `ValueError` that says what is wrong with it."""
    path = pathlib.Path(path)
    if not path.exists():
        raise ValueError("no such file")
    if not path.is_file():
        raise ValueError("not a file")
    content = path.read_bytes()
    if not content:
        raise ValueError("the file is empty")
    return content


def classify(model, path, labels):
    """Ranks the labels for one file.

    Args:
        model: a loaded SavedModel.
        path: the image file.
        labels: strings, or None for those the model was exported with.

    Returns:
        `[(label, score)]`, best first.

    Raises:
        ValueError: if the file cannot be read as an image.
    """
    import tensorflow as tf

    inputs = {"image_bytes": tf.constant([read_image(path)])}
    signature = "serving_default"
    if labels:
        signature, inputs["labels"] = "classify", tf.constant(labels)
    try:
        outputs = model.signatures[signature](**inputs)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"not a readable image ({_reason(error)})") from None
    names = [name.decode() for name in outputs["labels"].numpy()]
    scores = outputs["scores"].numpy()[0].tolist()
    ranked = zip(names, scores, strict=True)
    return sorted(ranked, key=lambda pair: -pair[1])


def _reason(error):
    """What TensorFlow says is wrong, without where in its graph that was."""
    places = ("Graph execution error", "Detected at node", "<stack traces", "[[")
    lines = [line.strip() for line in str(error.message).splitlines()]
    reasons = [line for line in lines if line and not line.startswith(places)]
    reason = reasons[0].removeprefix("assertion failed: ") if reasons else "unknown"
    return reason.replace("[", "").replace("]", "")  # an assertion's pieces


def _print(path, ranked):
    if _JSON.value:
        predictions = [{"label": name, "score": score} for name, score in ranked]
        print(json.dumps({"file": str(path), "predictions": predictions}))
        return
    print(path)
    for name, score in ranked:
        print(f"  {score:7.2%}  {name}")


def main(arguments):
    files = arguments[1:]
    if not files:
        print("error: no file given; see --help", file=sys.stderr)
        return 1
    if not (pathlib.Path(_SAVED_MODEL.value) / "saved_model.pb").is_file():
        print(f"error: {_SAVED_MODEL.value} is not a SavedModel", file=sys.stderr)
        return 1
    # TensorFlow loads Keras, which loads these where they are installed: 2 s for parts
    # of it that nothing here uses.
    for module in ("matplotlib", "sklearn"):
        sys.modules.setdefault(module, None)
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (registers the tokenizer's ops)

    try:
        model = tf.saved_model.load(_SAVED_MODEL.value)
    except (OSError, ValueError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())[:200]
        print(
            f"error: {_SAVED_MODEL.value} cannot be loaded: {reason}", file=sys.stderr
        )
        return 1
    if not {"serving_default", "classify"} <= set(model.signatures):
        print(
            f"error: {_SAVED_MODEL.value} is not of tools.export_saved_model",
            file=sys.stderr,
        )
        return 1
    labels = [label.strip() for label in _LABELS.value or [] if label.strip()]
    if _LABELS.value is not None and not labels:
        print("error: --labels names no label", file=sys.stderr)
        return 1
    failed = False
    for path in files:
        try:
            _print(path, classify(model, path, labels)[: _TOP.value])
        except (ValueError, OSError) as error:
            failed = True
            if _JSON.value:
                print(json.dumps({"file": str(path), "error": str(error)}))
            print(f"error: {path}: {error}", file=sys.stderr)
    return int(failed)


def _main_and_exit(arguments):
    status = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # tearing TensorFlow down takes longer than another answer


if __name__ == "__main__":
    flags.mark_flag_as_required("saved_model")
    app.run(_main_and_exit)
