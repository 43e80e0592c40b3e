"""Evaluations inside training, at stated steps."""

from basic_tf.evaluation import embedder, evaluations, task_files
from basic_tf.training import loaded_run


class Evaluator:
    """What `config.evaluation` asks for, of the weights of the moment.

    Args:
        config: `ConfigDict` of the run; its `evaluation` has `tasks` and, where
            training evaluates, `every_steps`, steps of the run between two times.
        model: `DualEncoder`.
        tokenizer: of the run.

    Raises:
        ValueError: for a task or kind that there is not, data that are missing, and a
            negative `every_steps`.
    """

    def __init__(self, config, model, tokenizer):
        self.every_steps = config.evaluation.get("every_steps", 0)
        if self.every_steps < 0:
            raise ValueError(
                f"evaluation.every_steps is {self.every_steps}; 0 is for never"
            )
        if not self.every_steps:
            return
        setting = evaluations.Setting(
            task_files.known_tasks(), config.data.data_dir or None
        )
        names = config.evaluation.tasks
        self._evaluations = [evaluations.parse(name, setting) for name in names]
        for each in self._evaluations:
            each.require_data()
        size = config.model.image_encoder.image_size
        run = loaded_run.LoadedRun(model, tokenizer, config, size, [])
        self._embedder = embedder.Embedder(run)

    def is_due(self, total_step):
        """Whether a step of the run is one to evaluate after."""
        return bool(self.every_steps) and total_step % self.every_steps == 0

    def metrics(self):
        """`{"TASK/METRIC": number}`: the main metric of each, or all that it has."""
        found = {}
        for each in self._evaluations:
            measured = each.run(self._embedder).metrics
            if "value" in measured:
                measured = {measured["metric"]: measured["value"]}
            found |= {f"{each.name}/{name}": value for name, value in measured.items()}
        return found
