"""Effective robustness: accuracy on shifted sets against that on the reference set.

After Taori et al. 2020 and BASIC figure 3. Models of one kind lie on a line where both
axes are logits, which in accuracies is a logistic curve; how far a model lies above the
line of the baselines is its effective robustness.
"""

import dataclasses
import json
import pathlib

import numpy as np

REFERENCE = "imagenet"
SHIFTED = (
    *("imagenet_a", "imagenet_r", "imagenet_v2"),
    *("imagenet_sketch", "objectnet"),
)
KINDS = ("baseline", "zero_shot")


@dataclasses.dataclass(frozen=True)
class Model:
    """A model and how it did.

    Attributes:
        name: as a plot and a table call it.
        kind: of `KINDS`: trained on the reference set, or classifying zero-shot.
        accuracies: `{name of the set: accuracy in [0, 1]}`.
        source: where the accuracies are from.
    """

    name: str
    kind: str
    accuracies: dict
    source: str = ""

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(
                f"{self.name} is of kind {self.kind!r}; known: {', '.join(KINDS)}"
            )
        for name, accuracy in self.accuracies.items():
            if not 0 <= accuracy <= 1:
                raise ValueError(
                    f"{self.name} has accuracy {accuracy:g} on {name}; give a share in "
                    "[0, 1]"
                )


@dataclasses.dataclass(frozen=True)
class Line:
    """`logit(shifted accuracy) = slope * logit(reference accuracy) + intercept`."""

    slope: float
    intercept: float

    def predict(self, accuracy):
        """Shifted accuracy at a reference accuracy in (0, 1), float or array."""
        return _logistic(self.slope * logit(accuracy) + self.intercept)

    def crossing(self):
        """The accuracy where it meets y = x; None where the two are parallel."""
        if self.slope == 1:
            return None
        return float(_logistic(self.intercept / (1 - self.slope)))


def published_models():
    """List of the `Model`s in `published_robustness.json`, with their sources."""
    path = pathlib.Path(__file__).with_name("published_robustness.json")
    return [Model(**fields) for fields in json.loads(path.read_text())]


def logit(accuracy):
    """`ln(p / (1 - p))` of a float or an array.

    Raises:
        ValueError: for 0 and 1, which have none, and beyond.
    """
    accuracy = np.asarray(accuracy, np.float64)
    wrong = accuracy[~((accuracy > 0) & (accuracy < 1))]
    if wrong.size:
        raise ValueError(
            f"accuracy {wrong.flat[0]:g} has no place on a logit axis; it must be "
            "between 0 and 1, and neither"
        )
    return np.log(accuracy) - np.log1p(-accuracy)


def means(model, reference=REFERENCE, shifted=SHIFTED):
    """Mean accuracy, always with the sets that it is of.

    Papers give either mean under one name: BASIC's "average of 84.3" is of six sets,
    ImageNet among them; its five shifted sets average 84.06.

    Args:
        model: `Model`.
        reference: name of the set that is not shifted.
        shifted: names of the others.

    Returns:
        `{"shifted_mean", "mean_with_reference", "reference", "shifted"}`, the last two
        the names.

    Raises:
        ValueError: naming the sets without an accuracy, and for no shifted set.
    """
    values = _accuracies(model, [reference, *shifted])
    if not shifted:
        raise ValueError("a mean over shifted sets needs one at least")
    return {
        "shifted_mean": float(np.mean(values[1:])),
        "mean_with_reference": float(np.mean(values)),
        "reference": reference,
        "shifted": list(shifted),
    }


def describe_means(model, reference=REFERENCE, shifted=SHIFTED):
    """Both means in a line, with the sets; arguments as those of `means`."""
    found = means(model, reference, shifted)
    return (
        f"{model.name}: {100 * found['shifted_mean']:.2f} % over {len(shifted)} "
        f"shifted sets ({', '.join(shifted)}), "
        f"{100 * found['mean_with_reference']:.2f} % over {len(shifted) + 1} with "
        f"{reference}"
    )


def points(models, reference=REFERENCE, shifted=SHIFTED):
    """Reference accuracy and shifted mean of each model, `[n, 2]`."""
    pairs = [
        (_accuracies(m, [reference])[0], means(m, reference, shifted)["shifted_mean"])
        for m in models
    ]
    return np.array(pairs).reshape(-1, 2)


def fit(pairs):
    """The line through models of one kind, by least squares on logit axes.

    Args:
        pairs: `[n, 2]`, as from `points`; n at least 2.

    Returns:
        `Line`.

    Raises:
        ValueError: for fewer than two reference accuracies, and for 0 and 1.
    """
    pairs = np.asarray(pairs, np.float64).reshape(-1, 2)
    num_different = len(np.unique(pairs[:, 0]))
    if num_different < 2:
        raise ValueError(
            f"{len(pairs)} models of {num_different} reference accuracies have no "
            "line; two that differ are needed"
        )
    x, y = logit(pairs).T
    centered = x - x.mean()
    slope = float(centered @ y / (centered @ centered))
    return Line(slope, float(y.mean() - slope * x.mean()))


def effective_robustness(pairs, baseline):
    """Shifted accuracy beyond what the baselines' line says, `[n]`.

    Args:
        pairs: `[n, 2]`, as from `points`.
        baseline: `Line`.
    """
    pairs = np.asarray(pairs, np.float64).reshape(-1, 2)
    return pairs[:, 1] - baseline.predict(pairs[:, 0])


def _accuracies(model, names):
    missing = [name for name in names if name not in model.accuracies]
    if missing:
        raise ValueError(
            f"{model.name} has no accuracy on {', '.join(missing)}; it has "
            f"{', '.join(model.accuracies) or 'none'}"
        )
    return [model.accuracies[name] for name in names]


def _logistic(value):
    return 1 / (1 + np.exp(-np.asarray(value, np.float64)))
