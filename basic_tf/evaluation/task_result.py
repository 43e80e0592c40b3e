"""What comes out of an evaluation, whatever was measured."""

import dataclasses

import numpy as np

from basic_tf.data import sources
from basic_tf.evaluation import metrics as classification


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """Outcome of one evaluation of a task.

    Attributes:
        kind: what was measured; see `evaluations.KINDS`.
        metrics: `{name: number}`; `"metric"`, `"value"` and `"interval"` are the main
            one, where there is one.
        examples: `sources.Examples` that were evaluated; None where a report needs
            none of them.
        ranking: `metrics.Ranking` of the classes of each example, or None.
        labels: `[N]` int beside a ranking, or None.
        class_names: C names to choose from, where there are some.
        templates: texts with one slot that they were put into, where they were.
    """

    kind: str
    metrics: dict
    examples: sources.Examples | None
    ranking: classification.Ranking | None = None
    labels: np.ndarray | None = None
    class_names: list = dataclasses.field(default_factory=list)
    templates: list = dataclasses.field(default_factory=list)
