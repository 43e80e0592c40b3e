"""An evaluated run, as a report shows it, alone or beside others."""

import dataclasses
import pathlib

from basic_tf.evaluation import zero_shot


@dataclasses.dataclass(frozen=True)
class RunOutcome:
    """A run and how it did.

    Attributes:
        workdir: folder of the run.
        run: `loaded_run.LoadedRun`.
        results: `{name of the evaluation: TaskResult}`.
        rows: rows of its `metrics.jsonl`.
        training: content of its `train.json`.
        descriptions: `{name of a task: what it is}`.
        sweep: `{step of a checkpoint: {task: accuracy}}`, where all were evaluated.
    """

    workdir: str
    run: object
    results: dict
    rows: list
    training: dict
    descriptions: dict = dataclasses.field(default_factory=dict)
    sweep: dict = dataclasses.field(default_factory=dict)

    def of_kind(self, kind):
        """`{task: TaskResult}` of one kind."""
        return {
            name.partition(":")[0]: result
            for name, result in self.results.items()
            if result.kind == kind
        }

    def metrics_of_kind(self, kind):
        """`{task: metrics}` of one kind."""
        return {name: result.metrics for name, result in self.of_kind(kind).items()}

    def accuracies(self):
        """`{task: top-1}` of zero-shot classification."""
        found = self.metrics_of_kind(zero_shot.KIND)
        return {name: m["top1"] for name, m in found.items() if "top1" in m}


def names(outcomes):
    """Short names of runs, that differ."""
    short = [pathlib.Path(outcome.workdir).resolve().name for outcome in outcomes]
    if len(set(short)) == len(short):
        return short
    return [str(outcome.workdir) for outcome in outcomes]
