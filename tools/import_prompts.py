"""Collects templates and class names of other projects for `experiments.evaluate`.

Of an installed distribution data files are read, or a Python file is parsed: nothing of
it runs, and PyTorch is not needed (`pip install --no-deps clip-benchmark`).

Examples:
  python -m tools.import_prompts --distribution clip-benchmark --output prompts
  python -m tools.import_prompts --distribution open_clip_torch --output prompts
  python -m tools.import_prompts --templates my_templates.json \\
      --class_names my_names.json --output prompts
  python -m experiments.evaluate --workdir runs/clip --tasks cifar10 --prompts prompts
"""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

from basic_tf.evaluation import distributions, prompt_sets
from experiments import command_line

_DISTRIBUTION = flags.DEFINE_enum(
    "distribution",
    None,
    [distributions.CLIP_BENCHMARK, distributions.OPEN_CLIP],
    "An installed distribution to read.",
)
_LANGUAGE = flags.DEFINE_string("language", "en", "Of clip-benchmark's prompts.")
_TEMPLATES = flags.DEFINE_string(
    "templates", None, "A JSON file: an object of a list of templates for each task."
)
_CLASS_NAMES = flags.DEFINE_string(
    "class_names", None, "A JSON file: an object of a list of names for each task."
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder to write; the tasks that are there already stay."
)
_JSON = flags.DEFINE_boolean("json", False, "Print the counts as JSON.")


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_OUTPUT.value)
    if not (_DISTRIBUTION.value or _TEMPLATES.value or _CLASS_NAMES.value):
        raise ValueError("give --distribution, --templates or --class_names")
    sets = prompt_sets.PromptSets()
    if _DISTRIBUTION.value == distributions.CLIP_BENCHMARK:
        sets = distributions.read_clip_benchmark(_LANGUAGE.value)
    elif _DISTRIBUTION.value == distributions.OPEN_CLIP:
        sets = distributions.read_open_clip()
    if _TEMPLATES.value:
        given = prompt_sets.read_templates(_TEMPLATES.value)
        sets = sets.union(prompt_sets.PromptSets(templates=given))
    if _CLASS_NAMES.value:
        given = prompt_sets.read_names(_CLASS_NAMES.value)
        sets = sets.union(prompt_sets.PromptSets(class_names=given))
    written = prompt_sets.write(_OUTPUT.value, sets)
    counts = {
        task: {
            "templates": len(written.templates.get(task, [])),
            "class_names": len(written.class_names.get(task, [])),
        }
        for task in sorted(written.templates.keys() | written.class_names.keys())
    }
    if _JSON.value:
        print(json.dumps(counts, indent=2))
        return
    for task, count in counts.items():
        print(f"{task}: {count['templates']} templates, {count['class_names']} names")


if __name__ == "__main__":
    flags.mark_flag_as_required("output")
    command_line.run(main)
