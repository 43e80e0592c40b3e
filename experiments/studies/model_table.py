"""The sizes of all named encoders beside those that their papers print.

Parameters and FLOPs of CoAtNet-0 to 7, BASIC's text encoders and SimCLR's ResNets, and
the parameters of the grid of image and text sizes; no weights are made.

Example:
  python -m experiments.studies.model_table --output runs/model_table
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags
from matplotlib import figure

from basic_tf.models import asymmetric_grid, description, zoo
from experiments import command_line
from experiments.studies import page

_OUTPUT = flags.DEFINE_string("output", None, "Folder for table.json and report.html.")
_QUICK = flags.DEFINE_boolean("quick", False, "Only what a paper gives figures of.")

# Millions of parameters and billions of FLOPs, as printed: CoAtNet's tables 4 and 5,
# BASIC's table 5, SimCLR's figure 1, the grid's table of encoders.
PAPERS = {
    "coatnet_0": (25, 4.2),
    "coatnet_1": (42, 8.4),
    "coatnet_2": (75, 15.7),
    "coatnet_3": (168, 34.7),
    "coatnet_4": (275, None),
    "coatnet_5": (688, None),
    "coatnet_6": (1470, None),
    "coatnet_7": (2440, 495.8),
    "text_basic_s": (108, 10.7),
    "text_basic_m": (184, 49.4),
    "text_basic_l": (670, 212.6),
    "resnet50_x1": (24, None),
    "resnet50_x2": (94, None),
    "resnet50_x4": (375, None),
}
AT_512 = {"coatnet_4": 360.9, "coatnet_5": 812, "coatnet_6": 1521, "coatnet_7": 2586}
GRID_IMAGES = {"atto": 10, "tiny": 50, "base": 86, "giant": 194, "colossal": 352}
GRID_TEXTS = {"femto": 3, "atto": 7, "nano": 18, "tiny": 37, "base": 63, "giant": 145}


def main(arguments):
    command_line.refuse(arguments)
    command_line.check_folder(_OUTPUT.value)
    rows = []
    for name in zoo.ENCODERS:
        if name in PAPERS or not _QUICK.value:
            rows.append(_encoder_row(name))
            print(rows[-1], flush=True)
    rows += [_large_image_row(name, billions) for name, billions in AT_512.items()]
    rows += [_pair_row(name) for name in asymmetric_grid.PAIRS]
    page.write(
        _OUTPUT.value, "Sizes of the models", _summary(rows), rows, [_plot(rows)]
    )
    print(_summary(rows))


def _encoder_row(name):
    counted = zoo.describe(name)
    # BASIC counts an image encoder's multiply-adds; its texts fit neither unit.
    per_multiply_add = 2 if name in zoo.TEXT_TRANSFORMERS else 1
    paper_parameters, paper_flops = PAPERS.get(name, (None, None))
    return _row(
        name,
        counted.parameters,
        paper_parameters,
        per_multiply_add * counted.multiply_adds,
        paper_flops,
    )


def _large_image_row(name, billions):
    counted = description.describe(
        lambda: zoo.encoder(name, image_size=512), (512, 512, 3)
    )
    return _row(
        f"{name}_at_512", counted.parameters, None, counted.multiply_adds, billions
    )


def _pair_row(name):
    _, of_images, of_texts = name.split("_")
    return _row(
        name,
        asymmetric_grid.parameters(name),
        GRID_IMAGES[of_images] + GRID_TEXTS[of_texts],
    )


def _row(name, parameters, paper_millions, flops=None, paper_billions=None):
    return {
        "name": name,
        "parameters": parameters,
        "paper_parameters": paper_millions and round(paper_millions * 1e6),
        "flops": flops,
        "paper_flops": paper_billions and round(paper_billions * 1e9),
    }


def _ratios(rows, field):
    """Ours over the paper's, of the rows that have both."""
    return {
        row["name"]: row[field] / row[f"paper_{field}"]
        for row in rows
        if row[field] and row[f"paper_{field}"]
    }


def _furthest(ratios):
    name = max(ratios, key=lambda name: abs(ratios[name] - 1))
    return f"{name}, {ratios[name]:.3f} times"


def _summary(rows):
    of_flops = _ratios(rows, "flops")
    images = {name: of_flops[name] for name in of_flops if "text" not in name}
    return (
        "Parameters are those that are trained: a CoAtNet's with a classifier of 1000 "
        "classes, as its paper counts, and a norm before it; a ResNet's without. "
        "FLOPs are of one image of 224 x 224 pixels (512 where the name says so), in "
        "multiply-adds, as the papers count them, of convolutions, matrix products and "
        "attention. Those of a text of 64 tokens are twice its multiply-adds: no unit "
        "fits all three of BASIC's figures. The grid's parameters are those of both "
        "encoders, the paper's the sum of its two rounded figures. Furthest from its "
        f"paper in parameters: {_furthest(_ratios(rows, 'parameters'))}; in FLOPs, of "
        f"the image encoders: {_furthest(images)}."
    )


def _plot(rows):
    plot = figure.Figure(figsize=(8, 4))
    axes = plot.subplots()
    for field, marker in (("parameters", "o"), ("flops", "x")):
        ratios = {
            name: ratio
            for name, ratio in _ratios(rows, field).items()
            if name not in asymmetric_grid.PAIRS
        }
        axes.plot(list(ratios), list(ratios.values()), marker, label=field)
    axes.axhline(1, color="gray", linewidth=0.5)
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylabel("ours over the paper's")
    axes.legend()
    return plot


if __name__ == "__main__":
    flags.mark_flags_as_required(["output"])
    command_line.run(main)
