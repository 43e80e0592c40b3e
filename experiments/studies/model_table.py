"""The sizes of all named encoders beside those that their papers print.

Parameters and FLOPs of CoAtNet-0 to 7, BASIC's text encoders, SimCLR's ResNets, CLIP's
encoders, and the grid of image and text sizes; no weights are made.

Example:
  python -m experiments.studies.model_table --output runs/model_table
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from matplotlib import figure

from basic_tf.models import asymmetric_grid, clip_configurations, description, zoo
from experiments.studies import fresh_process, page

# Millions of parameters and billions of FLOPs, as printed: CoAtNet's tables 4 and 5,
# BASIC's table 5, SimCLR's figure 1, the grid's table of encoders; of CLIP's models, as
# OpenAI's own notebook counts the released ones.
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
    "vit_b_32": (151.277313, None),
    "vit_l_14": (427.616513, None),
    "vit_l_14_336": (427.944193, None),
    "rn50": (102.007137, None),
    "rn101": (119.688033, None),
    "rn50x4": (178.300601, None),
    "image_asym_atto": (10, None),
    "image_asym_tiny": (50, None),
    "image_asym_base": (86, None),
    "image_asym_giant": (194, None),
    "image_asym_colossal": (352, None),
    "text_asym_femto": (3, None),
    "text_asym_atto": (7, None),
    "text_asym_nano": (18, None),
    "text_asym_tiny": (37, None),
    "text_asym_base": (63, None),
    "text_asym_giant": (145, None),
}
AT_512 = {"coatnet_4": 360.9, "coatnet_5": 812, "coatnet_6": 1521, "coatnet_7": 2586}


def main(output, quick):
    rows = []
    for name in [*zoo.ENCODERS, *clip_configurations.CLIP_CONFIGURATIONS]:
        if name in PAPERS or not quick:  # then only what a paper gives figures of
            rows.append(_encoder_row(name))
            print(rows[-1], flush=True)
    rows += [_large_image_row(name, billions) for name, billions in AT_512.items()]
    by_name = {row["name"]: row for row in rows}
    rows += [_pair_row(name, by_name) for name in asymmetric_grid.CONFIGURATIONS]
    page.write(output, "Sizes of the models", _summary(rows), rows, [_plot(rows)])
    print(_summary(rows))


def _encoder_row(name):
    counted = zoo.describe(name)
    # The papers count an image encoder's multiply-adds; BASIC's texts fit neither unit.
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


def _pair_row(name, by_name):
    _, of_images, of_texts = name.split("_")
    parts = by_name[f"image_asym_{of_images}"], by_name[f"text_asym_{of_texts}"]
    sums = {
        field: sum(part[field] for part in parts)
        for field in ("parameters", "paper_parameters", "flops")
    }
    return {"name": name, **sums, "paper_flops": None}


def _row(name, parameters, paper_millions, flops, paper_billions):
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
        "fits all three of BASIC's figures. A pair's are sums over its encoders, which "
        "the grid's paper rounds to millions each. Furthest from its "
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
            if name not in asymmetric_grid.CONFIGURATIONS
        }
        axes.plot(list(ratios), list(ratios.values()), marker, label=field)
    axes.axhline(1, color="gray", linewidth=0.5)
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylabel("ours over the paper's")
    axes.legend()
    return plot


if __name__ == "__main__":
    fresh_process.run(main)
