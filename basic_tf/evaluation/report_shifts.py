"""What a report's page says of distribution shifts: means, drops, BASIC's figure 3.

`shifts.json` says which task is the reference of which shifted ones.
"""

import json
import pathlib

from basic_tf.evaluation import robustness, robustness_plot


def read():
    """List of `{"reference": task, "shifted": [tasks]}`."""
    return json.loads(pathlib.Path(__file__).with_name("shifts.json").read_text())


def rows(name, accuracies):
    """What a run's accuracies say of each shift that it was evaluated on.

    Args:
        name: of the run.
        accuracies: `{task: top-1 in [0, 1]}`.

    Returns:
        List of what `robustness.means` has with `"run"`, `"reference_accuracy"`,
        `"drop"` to the shifted mean, and `"effective_robustness"`: how far the shifted
        mean is above the line of the published zero-shot models at that reference
        accuracy, None where that has no place on a logit axis. Shifted tasks that
        were not evaluated are left out, and so is a shift without any.
    """
    found = []
    for shift in read():
        shifted = [task for task in shift["shifted"] if task in accuracies]
        reference = shift["reference"]
        if not shifted or reference not in accuracies:
            continue
        model = robustness.Model(name, "zero_shot", accuracies)
        means = robustness.means(model, reference, shifted)
        accuracy = accuracies[reference]
        found.append(
            means
            | {
                "run": name,
                "reference_accuracy": accuracy,
                "drop": accuracy - means["shifted_mean"],
                "effective_robustness": _above_line(accuracy, means["shifted_mean"]),
            }
        )
    return found


def plot_uri(shift_rows):
    """Figure 3 with the runs among the published models; None if none has a place.

    Args:
        shift_rows: rows of all runs.
    """
    own = [
        robustness.Model(
            f"{row['run']}: {row['reference']}, {', '.join(row['shifted'])}",
            "zero_shot",
            dict.fromkeys(robustness.SHIFTED, row["shifted_mean"])
            | {robustness.REFERENCE: row["reference_accuracy"]},
        )
        for row in shift_rows
        if _has_place(row["reference_accuracy"]) and _has_place(row["shifted_mean"])
    ]
    if not own:
        return None
    return robustness_plot.plot_uri(robustness.published_models(), own)


def _above_line(accuracy, shifted_mean):
    if not _has_place(accuracy):
        return None
    line = robustness.fit(robustness.points(robustness.published_models()))
    pair = [(accuracy, shifted_mean)]
    return float(robustness.effective_robustness(pair, line)[0])


def _has_place(accuracy):
    return 0 < accuracy < 1
