"""Installed distributions of the form of others', whose code must not run."""

import json

TEMPLATES = {
    "cifar10": ["a photo of a {c}.", "a {c}, of low contrast."],
    "kitti_closest_vehicle_distance": ["{c}"],
}
CLASS_NAMES = {"cifar10": ["airplane", "tom & jerry's 100% {cat}"], "other": ["x", ""]}
OPEN_CLIP_FILE = """
OPENAI_IMAGENET_TEMPLATES = (
    lambda c: f'a bad photo of a {c}.',
    lambda c: f'{{braces}} around the {c}!',
)

SIMPLE_IMAGENET_TEMPLATES = (lambda c: f'itap of a {c}.',)

IMAGENET_CLASSNAMES = [
    "tench", "kite (bird of prey)", 'baluster / handrail',
    "Geoffroy's spider monkey",
]
"""


def write_distribution(folder, name, package, contents):
    """Puts files `{name: text}` into `folder`, as pip leaves a package there."""
    contents = contents | {"__init__.py": "raise SystemExit('the package was run')"}
    (folder / package).mkdir(parents=True)
    for file, text in contents.items():
        (folder / package / file).write_text(text, encoding="utf-8")
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n")
    rows = [f"{package}/{file},," for file in contents]
    (info / "RECORD").write_text("\n".join(rows) + "\n")


def write_clip_benchmark(folder):
    write_distribution(
        folder,
        "clip-benchmark",
        "clip_benchmark",
        {
            "en_classnames.json": json.dumps(CLASS_NAMES),
            "en_zeroshot_classification_templates.json": json.dumps(TEMPLATES),
            "jp_classnames.json": json.dumps({"cifar10": ["飛行機", "猫"]}),
        },
    )


def write_open_clip(folder, content=OPEN_CLIP_FILE):
    write_distribution(
        folder, "open_clip_torch", "open_clip", {"zero_shot_metadata.py": content}
    )
