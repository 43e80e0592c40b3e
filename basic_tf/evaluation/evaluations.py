"""What is evaluated, in one syntax: `TASK`, or `TASK:KIND`.

| kind | measures |
|---|---|
| `zero_shot` | classification by names; without a kind, that of most tasks |
| `retrieval` | recall both ways; without a kind, that of tasks of retrieval |
| `linear_probe` | classification by a linear classifier of the embeddings |
| `geometry` | how the pairs of image and caption lie |
"""

import dataclasses

from basic_tf.evaluation import (
    geometry_task,
    probe_task,
    prompt_sets,
    results,
    retrieval_task,
    task_data,
    task_metrics,
    tasks,
    zero_shot,
)

KINDS = (zero_shot.KIND, retrieval_task.KIND, probe_task.KIND, geometry_task.KIND)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all evaluations of a program share.

    Attributes:
        known: `task_files.known_tasks()`.
        data_dir: folder of the data; TFDS's own when None.
        prompts: `prompt_sets.PromptSets` that go before the tasks' own, or None.
    """

    known: dict
    data_dir: str | None = None
    prompts: prompt_sets.PromptSets | None = None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One kind of measurement of one task; its data are read when it is run.

    Attributes:
        name: as it was asked for.
        task: name of the task.
        kind: of `KINDS`.
        setting: `Setting`.
    """

    name: str
    task: str
    kind: str
    setting: Setting

    @property
    def fields(self):
        """The fields of the task."""
        return self.setting.known[self.task]

    def require_data(self):
        """Refuses what has no data here; raises as `task_data.require`."""
        sources = [self.fields["source"]]
        if self.kind == probe_task.KIND:
            names = ("training", "validation")
            sources += [self.fields[name] for name in names if name in self.fields]
        for source in sources:
            task_data.require(
                self.task, self.fields | {"source": source}, self.setting.data_dir
            )

    def identity(self, model_hash, image_size):
        """What decides the result; see `results.identity`."""
        return results.identity(
            self.task,
            self.fields,
            model_hash,
            image_size,
            self.setting.prompts,
            self.kind,
        )

    def run(self, embedder):
        """Reads the data and measures.

        Args:
            embedder: `embedder.Embedder`.

        Returns:
            `TaskResult`.

        Raises:
            ValueError: as `tasks.load_task` and what is measured.
        """
        setting = self.setting
        if self.kind == probe_task.KIND:
            return probe_task.evaluate(
                embedder, self.task, self.fields, setting.data_dir
            )
        if self.kind == geometry_task.KIND:
            examples = tasks.load_checked(self.task, self.fields, setting.data_dir)
            source = self.fields["source"]
            return geometry_task.evaluate(embedder, self.task, source, examples)
        task = tasks.load_task(
            self.task, setting.data_dir, setting.known, setting.prompts
        )
        if self.kind == retrieval_task.KIND:
            return retrieval_task.evaluate(embedder, task)
        return zero_shot.evaluate(embedder, task)

    def restore(self, folder, record):
        """The result that a folder holds, as `results.restore`."""
        examples = None
        if self.kind == zero_shot.KIND:
            examples = tasks.load_examples(
                self.fields, record["left_out"], self.setting.data_dir
            )
        return results.restore(folder, record, examples)


def parse(name, setting):
    """The `Evaluation` that a name asks for.

    Args:
        name: `TASK` or `TASK:KIND`.
        setting: `Setting`.

    Raises:
        ValueError: for an unknown task or kind, and for a kind that does not fit the
            task.
    """
    task, _, kind = name.partition(":")
    tasks.check_name(task, setting.known)
    fields = setting.known[task]
    is_retrieval = fields["metric"] == task_metrics.RETRIEVAL
    kind = kind or (retrieval_task.KIND if is_retrieval else zero_shot.KIND)
    if kind not in KINDS:
        raise ValueError(f"{name}: no kind {kind!r}; there are {', '.join(KINDS)}")
    if is_retrieval and kind in (zero_shot.KIND, probe_task.KIND):
        raise ValueError(f"{name}: {task} is a task of retrieval, it has no classes")
    if kind == probe_task.KIND and "training" not in fields:
        raise ValueError(f"{name}: the task names no training source for a probe")
    if kind == probe_task.KIND and fields["metric"] == task_metrics.MULTI_LABEL:
        raise ValueError(f"{name}: a probe is of one label an image, {task} of several")
    return Evaluation(name, task, kind, setting)
