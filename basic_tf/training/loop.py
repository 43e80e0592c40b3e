"""A run: build from a configuration, train its phases, checkpoint, resume."""

import dataclasses
import json
import pathlib
import time

import keras
import tensorflow as tf
from absl import logging

from basic_tf import files
from basic_tf.models import zoo
from basic_tf.training import (
    checkpoints,
    distribution,
    evaluator,
    loaded_run,
    phases,
    run_data,
    run_log,
)
from basic_tf.training import workdir as workdirs


@dataclasses.dataclass
class RunState:
    """How far a run has come: the part of a checkpoint that is not weights.

    Attributes:
        phase: index of the current phase.
        step: steps done in it.
        total_step: steps done in the run.
        seconds: wall time of making the phases and of those steps.
        cpu_seconds: processor time of the same, all cores together.
        num_replicas: that took these steps.
    """

    phase: int = 0
    step: int = 0
    total_step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    num_replicas: int = 1

    @classmethod
    def names(cls):
        """Names of its variables in a checkpoint."""
        return [f"state/{field.name}" for field in dataclasses.fields(cls)]

    @classmethod
    def from_stored(cls, stored):
        """From what `variables` put into a checkpoint; a fresh state from nothing."""
        fields = {field.name: field.type for field in dataclasses.fields(cls)}
        return cls(
            **{
                name: kind(stored[f"state/{name}"])
                for name, kind in fields.items()
                if stored
            }
        )

    def variables(self):
        """What a checkpoint holds of it, by name."""
        return {
            f"state/{name}": tf.Variable(value, dtype=tf.float64)
            for name, value in dataclasses.asdict(self).items()
        }

    def count_step(self):
        self.step += 1
        self.total_step += 1

    def add_time(self, start):
        """Counts the time since `start`, of `run_log.clock`."""
        wall, cpu = run_log.clock()
        self.seconds += wall - start[0]
        self.cpu_seconds += cpu - start[1]


def train(config, workdir, mesh=None):
    """Trains a run, or goes on with one that was interrupted, to its last step.

    Under a `tf.distribute` strategy, which the caller enters the scope of, `batch_size`
    is that of all replicas. Of several processes every one reads the folder and the
    chief alone writes it.

    Where operations are deterministic (`tf.config.experimental.enable_op_determinism`)
    a run that resumes is bit for bit the one that was never interrupted.

    Args:
        config: `ConfigDict`; see `experiments/configs/glyphs.py` for its fields.
            `initial_run`, which need not be there, is the folder of a run whose
            tokenizer and weights this one starts with; it is read no more once this
            one has a checkpoint.
        workdir: folder of the run, made when missing.

    Raises:
        ValueError: if the folder belongs to a run of another configuration or is in use
            by another process, if the configuration cannot be trained, if the weights
            of `initial_run` do not fit its model, or if all checkpoints are damaged.
        FloatingPointError: at a step whose loss or gradient is not finite, when the
            phase has skipped its `max_non_finite_steps`.
    """
    _check(config, mesh)
    workdir = pathlib.Path(workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    if not distribution.is_chief():
        distribution.wait_for_all()
        workdirs.check_shared(workdir)
        _train_phases(config, workdir, mesh, *run_data.load(config, workdir))
        return
    with workdirs.exclusive(workdir):
        workdirs.claim(workdir, config)
        data = run_data.load(config, workdir)
        distribution.wait_for_all()  # the others may read the folders now
        _train_phases(config, workdir, mesh, *data)


def _check(config, mesh):
    """Refuses what no run can be trained with, before anything is written."""
    if not 0 <= config.seed < 2**32:
        raise ValueError(f"seed {config.seed} must be at least 0 and below 2**32")
    positive = {name: config[name] for name in ("log_every", "checkpoint_every")}
    order = config.phase_order
    if not order or len(set(order)) < len(order):
        raise ValueError(f"phase_order {tuple(order)} must name phases, each once")
    for name in config.phase_order:
        if name not in config.phases:
            known = ", ".join(config.phases)
            raise ValueError(f"phase_order names {name!r}; the phases are {known}")
        for field in ("steps", "batch_size", "learning_rate"):
            positive[f"phases.{name}.{field}"] = config.phases[name][field]
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name} is {value} and must be more than 0")
    for name in config.phase_order:
        phases.check_fields(name, config.phases[name], mesh)


def _train_phases(config, workdir, mesh, examples, tokenizer):
    there = sorted(set(examples.labels) - {-1})
    names = [examples.label_names[index] for index in there]
    if distribution.is_chief():
        files.write_whole(workdir / "labels.json", json.dumps(names))
    # Only now: preparing a data set for the first time draws random numbers, too.
    keras.utils.set_random_seed(config.seed)
    model = zoo.build(config.model.to_dict(), tokenizer.vocabulary_size)
    for name in config.phase_order:
        phases.check_phase(name, config.phases[name], model, examples, mesh)
    evaluations = evaluator.Evaluator(config, model, tokenizer)
    prefix, stored = checkpoints.read(workdir / "checkpoints", RunState.names())
    state = RunState.from_stored(stored)
    _announce_replicas(state, bool(prefix))
    log = run_log.RunLog(workdir, state, distribution.is_chief())
    phase = None
    if prefix:
        checkpoints.restore(prefix, loaded_run.model_variables(model))
        logging.info("going on from %s", prefix)
    elif config.get("initial_run"):
        first = loaded_run.start_from(
            config.initial_run,
            model,
            config.model.to_dict(),
            tokenizer.vocabulary_size,
        )
        logging.info("starting from %s", first)
    while state.phase < len(config.phase_order):
        name = config.phase_order[state.phase]
        keras.utils.set_random_seed(config.seed + 1 + state.phase)
        start = run_log.clock()
        phase = phases.make_phase(
            name,
            config.phases[name],
            model,
            examples,
            tokenizer,
            config.model.image_encoder.image_size,
            config.seed + state.phase,
            mesh,
        )
        state.add_time(start)  # a frozen encoder embeds all images here
        if state.step:
            checkpoints.restore(prefix, phase.variables())
        _run_phase(phase, config, workdir, state, log, evaluations)
        state.phase, state.step = state.phase + 1, 0
        if state.phase == len(config.phase_order) and distribution.is_chief():
            _write_summary(workdir, phase, model)
        _save(workdir, state, loaded_run.model_variables(model))
    if phase is None:
        print(f"{workdir} is trained to its last step already")


def _announce_replicas(state, resumes):
    """Says when a run goes on with another number of replicas."""
    num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if resumes and state.num_replicas != num_replicas:
        logging.warning(
            "going on with %d replicas where there were %d: from here on microbatches "
            "and random numbers are others than in one go",
            num_replicas,
            state.num_replicas,
        )
    state.num_replicas = num_replicas


def _write_summary(workdir, phase, model):
    summary = run_log.summarize(workdir) | {
        "input_examples_per_second": input_examples_per_second(phase),
        "parameters": {
            "image_encoder": zoo.count_parameters(model.image_encoder),
            "text_encoder": zoo.count_parameters(model.text_encoder),
        },
    }
    files.write_whole(workdir / "train.json", json.dumps(summary, indent=2))


def input_examples_per_second(phase, seconds=3.0):
    """Speed of a phase's input pipeline alone, with nothing training beside it."""
    pipeline = iter(phase.make_batches(0, 1_000_000))
    for _ in range(4):  # past the start of the pipeline and what it had prefetched
        next(pipeline)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        next(pipeline)
        count += phase.batch_size
    return round(count / (time.perf_counter() - start), 1)


def _run_phase(phase, config, workdir, state, log, evaluations):
    def save():
        _check_finite(phase.variables(), state, phase.name)
        _save(workdir, state, phase.variables())

    def evaluate():
        if not evaluations.is_due(state.total_step) or not distribution.is_chief():
            return {}
        if phase.trainer.sharded is not None:
            phase.trainer.sharded.store()
        return evaluations.metrics()

    watch = run_log.StepWatch(
        phase, log, config.log_every, config.checkpoint_every, save, evaluate
    )
    try:
        phase.trainer.fit(
            phase.make_batches(state.step, phase.steps),
            steps_per_epoch=phase.steps - state.step,
            callbacks=[watch],
            shuffle=False,  # the batches are shuffled already
            verbose=0,
        )
        _check_finite(phase.variables(), state, phase.name)
    except FloatingPointError as error:
        newest = checkpoints.newest(workdir / "checkpoints") or "none"
        raise FloatingPointError(f"{error}; the last checkpoint is {newest}") from None


def _check_finite(variables, state, phase_name):
    for name, variable in variables.items():
        if variable.dtype.is_floating and not tf.reduce_all(
            tf.math.is_finite(variable)
        ):
            raise FloatingPointError(
                f"{name} is not finite after step {state.step} of phase {phase_name} "
                f"(step {state.total_step} of the run)"
            )


def _save(workdir, state, variables):
    with distribution.checkpoint_folder(workdir / "checkpoints") as folder:
        checkpoints.save(folder, state.total_step, variables | state.variables())
