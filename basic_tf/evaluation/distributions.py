"""Prompts that other installed distributions hold, read without importing these.

`clip-benchmark` keeps them in JSON files, `open_clip_torch` in a Python file of its
own, whose literals are parsed and never run. Neither needs PyTorch to be read.
"""

import ast
import importlib.metadata
import re

from basic_tf.evaluation import prompt_sets, prompts

CLIP_BENCHMARK, OPEN_CLIP = "clip-benchmark", "open_clip_torch"
_TEMPLATES = "{}_zeroshot_classification_templates.json"
_CLASS_NAMES = "{}_classnames.json"
_METADATA = "zero_shot_metadata.py"
IMAGENET = "imagenet1k"  # what CLIP_benchmark calls the task


def read_clip_benchmark(language="en"):
    """The prompts of an installed `clip-benchmark`.

    Args:
        language: of its sets, such as `en`, `cn`, `jp`, `it` or `ar`.

    Returns:
        `PromptSets`.

    Raises:
        ValueError: if it is not installed or has no set in the language, with those
            that it has.
    """
    paths = _paths(CLIP_BENCHMARK)
    names = _TEMPLATES.format(language), _CLASS_NAMES.format(language)
    found = [paths.get(name) for name in names]
    if not any(found):
        pattern = re.escape(_CLASS_NAMES).replace(r"\{\}", "(.+)")
        known = sorted(m[1] for m in map(re.compile(pattern).fullmatch, paths) if m)
        raise ValueError(
            f"{CLIP_BENCHMARK} has no prompts in {language!r}; "
            f"it has {', '.join(known) or 'none'}"
        )
    return prompt_sets.PromptSets(
        prompt_sets.read_templates(found[0]) if found[0] else {},
        prompt_sets.read_names(found[1]) if found[1] else {},
    )


def read_open_clip():
    """ImageNet's class names and templates of an installed `open_clip_torch`.

    Returns:
        `PromptSets` of `IMAGENET`.

    Raises:
        ValueError: if it is not installed, or its file is written in another way.
    """
    path = _paths(OPEN_CLIP).get(_METADATA)
    if path is None:
        raise ValueError(f"{OPEN_CLIP} has no file {_METADATA}")
    values = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    try:
        templates = [_template(e) for e in values["OPENAI_IMAGENET_TEMPLATES"].elts]
        names = list(ast.literal_eval(values["IMAGENET_CLASSNAMES"]))
        prompts.check_templates(templates)
    except (KeyError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{path} is not written as open_clip writes it: {error}"
        ) from None
    return prompt_sets.PromptSets({IMAGENET: templates}, {IMAGENET: names})


def _template(node):
    """`lambda c: f"a {c}."` or a text, as a text with a slot."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not (isinstance(node, ast.Lambda) and isinstance(node.body, ast.JoinedStr)):
        raise ValueError(f"line {node.lineno} is no template")
    (argument,) = (argument.arg for argument in node.args.args)
    texts = []
    for part in node.body.values:
        if isinstance(part, ast.Constant):
            texts.append(part.value)
        elif ast.unparse(part.value) == argument and part.conversion == -1:
            texts.append("{c}")
        else:
            raise ValueError(f"line {part.lineno} inserts more than a class name")
    return "".join(texts)


def _paths(name):
    """`{file name: path}` of the files of an installed distribution."""
    try:
        listed = importlib.metadata.files(name)
    except importlib.metadata.PackageNotFoundError:
        raise ValueError(
            f"{name} is not installed: pip install --no-deps {name}"
        ) from None
    return {path.name: path.locate() for path in listed or []}
