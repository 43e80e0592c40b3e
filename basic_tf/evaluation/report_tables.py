"""The tables of a report's page, each of any number of runs.

Arguments called `outcomes` are `run_outcome.RunOutcome`s; differences are to the first.
"""

import numpy as np

from basic_tf.evaluation import intervals, report_shifts, zero_shot
from basic_tf.evaluation.run_outcome import names

MEASURED = {  # kind -> the metrics that the page shows
    "retrieval": [
        f"{way}_r{k}" for way in ("image_to_text", "text_to_image") for k in (1, 5, 10)
    ],
    "linear_probe": ["top1", "mean_per_class_recall", "lambda", "num_training"],
    "geometry": [
        *("alignment", "modality_gap", "image_uniformity", "text_uniformity"),
        *("image_rank_me", "text_rank_me", "num_pairs"),
    ],
}


def shifts(outcomes):
    """Rows of all runs; see `report_shifts.rows`."""
    return [
        row
        for name, outcome in zip(names(outcomes), outcomes, strict=True)
        for row in report_shifts.rows(name, outcome.accuracies())
    ]


def measured(outcomes, kind):
    """A table of what is measured beside zero-shot classification.

    Returns:
        `{"kind", "columns", "rows": [(run, task, [value or None])]}`.
    """
    keys = MEASURED[kind]
    rows = [
        (run, task, [metrics.get(key) for key in keys])
        for run, outcome in zip(names(outcomes), outcomes, strict=True)
        for task, metrics in outcome.metrics_of_kind(kind).items()
    ]
    return {"kind": kind, "columns": keys, "rows": rows}


def splits(outcomes):
    """Rows of the table of accuracies: tasks of one class an image, for each run."""
    rows = []
    for name, results in _by_task(outcomes):
        found = next(result.metrics for result in results if result)
        if "top1" not in found:
            continue
        rows.append(
            {
                "name": name,
                "description": outcomes[0].descriptions.get(name, ""),
                "num_examples": found["num_examples"],
                "num_classes": found["num_classes"],
                "metrics": [result and result.metrics for result in results],
                "intervals": [_difference(results[0], other) for other in results[1:]],
            }
        )
    return rows


def _difference(first, second):
    """95 % interval of the difference in top-1 on the same examples, or None."""
    if not first or not second or not first.ranking or not second.ranking:
        return None
    if not np.array_equal(first.labels, second.labels):
        return None
    return intervals.paired_difference(
        first.ranking.ranks == 0, second.ranking.ranks == 0
    )


def other_metrics(outcomes):
    """Rows of the tasks whose main metric is not top-1: name, metric, of each run."""
    rows = []
    for name, results in _by_task(outcomes):
        found = [result and result.metrics for result in results]
        metric = next(metrics["metric"] for metrics in found if metrics)
        if metric != "top1":
            rows.append((name, metric.replace("_", " "), found))
    return rows


def _by_task(outcomes):
    """`(task, [zero-shot TaskResult or None of each run])`."""
    found = [outcome.of_kind(zero_shot.KIND) for outcome in outcomes]
    for name in dict.fromkeys(name for results in found for name in results):
        yield name, [results.get(name) for results in found]
