"""What a run writes while it trains: `metrics.jsonl`, TensorBoard events, progress."""

import json
import os
import pathlib
import time

import keras
import tensorflow as tf

from basic_tf import files, memory


def clock():
    """`(wall, processor)` seconds, to count from."""
    return time.perf_counter(), time.process_time()


class RunLog:
    """The log of a run, over all its phases and resumptions.

    A row of `metrics.jsonl` is `{"phase", "step" (in the phase), "total_step",
    "examples" (of the phase), "seconds", "cpu_seconds" (of the run, training alone),
    "peak_memory_mb", ...}` with the trainer's metrics averaged since the row before
    (after a resume: since the checkpoint).

    Args:
        workdir: folder of the run.
        state: `RunState`; its total step is where the log goes on. Rows after it, which
            an interrupted run wrote but did not save, are dropped (TensorBoard's
            events keep them).
        writes: whether files are written at all.
    """

    def __init__(self, workdir, state, writes=True):
        self.state = state
        self._writes = writes
        if not writes:
            return
        self._path = pathlib.Path(workdir) / "metrics.jsonl"
        rows = [r for r in read_rows(workdir) if r["total_step"] <= state.total_step]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        files.write_whole(self._path, text)
        self._events = tf.summary.create_file_writer(str(self._path.parent / "events"))

    def write(self, phase, metrics):
        """Writes a row for the current step, and returns it."""
        state = self.state
        row = {
            "phase": phase.name,
            "step": state.step,
            "total_step": state.total_step,
            "examples": state.step * phase.batch_size,
            "seconds": round(state.seconds, 3),
            "cpu_seconds": round(state.cpu_seconds, 3),
            "peak_memory_mb": memory.peak_memory_mb(),
        } | {name: float(value) for name, value in metrics.items()}
        if not self._writes:
            return row
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        with self._events.as_default(step=state.total_step):
            for name, value in metrics.items():
                tf.summary.scalar(f"{phase.name}/{name}", value)
        self._events.flush()
        return row


class StepWatch(keras.callbacks.Callback):
    """Counts, times and logs the steps of a phase under `fit`, and saves checkpoints.

    Args:
        phase: `phases.Phase`.
        log: `RunLog`.
        log_every: steps between rows.
        save_every: steps between checkpoints.
        save: called without arguments to write one.
        evaluate: called after each step, for metrics to log beside it; see
            `evaluator.Evaluator`. None, or nothing from it, logs nothing.
    """

    def __init__(self, phase, log, log_every, save_every, save, evaluate=None):
        super().__init__()
        self.phase, self.log, self.save = phase, log, save
        self.evaluate = evaluate or dict
        self.log_every, self.save_every = log_every, save_every

    def on_train_begin(self, logs=None):
        self._start = clock()
        state = self.log.state
        self._last_row = {
            "step": state.step,
            "non_finite_steps": int(self.phase.trainer.non_finite_steps.numpy()),
            "examples": state.step * self.phase.batch_size,
            "seconds": state.seconds,
        }

    def on_train_batch_end(self, batch, logs=None):
        state, phase = self.log.state, self.phase
        state.add_time(self._start)
        state.count_step()
        count = int(logs["non_finite_steps"])
        if count > phase.max_non_finite_steps:
            raise FloatingPointError(
                f"the loss or its gradient is not finite at step {state.step} of phase "
                f"{phase.name} (step {state.total_step} of the run), the {count}. such "
                f"step of the phase where max_non_finite_steps is "
                f"{phase.max_non_finite_steps}; log_scale is "
                f"{float(phase.trainer.dual_encoder.log_scale.numpy())}"
            )
        is_last = state.step == phase.steps
        if is_last or state.step % self.log_every == 0:
            steps = state.step - self._last_row["step"]
            if count - self._last_row["non_finite_steps"] == steps:
                logs = {"non_finite_steps": count}  # there is nothing to average
            row = self.log.write(phase, logs)
            print(self._progress(row), flush=True)
            self.model.reset_metrics()
        if state.step % self.save_every == 0 and not is_last:
            self.save()
        evaluated = self.evaluate()
        if evaluated:
            self.log.write(phase, {"non_finite_steps": count} | evaluated)
        self._start = clock()  # no log, checkpoint or evaluation counts

    def _progress(self, row):
        before, self._last_row = self._last_row, row
        examples = row["examples"] - before["examples"]
        rate = examples / max(row["seconds"] - before["seconds"], 1e-9)
        left = (
            (self.phase.steps - row["step"]) * self.phase.batch_size / max(rate, 1e-9)
        )
        metrics = "  ".join(
            f"{name} {row[name]:.4f}"
            for name in self.phase.trainer.metric_names
            if name in row
        )
        skipped = int(row["non_finite_steps"])
        return (
            f"{self.phase.name} {row['step']}/{self.phase.steps}  {metrics}  "
            f"{rate:.0f} examples/s  {left:.0f} s left"
            + (f"  {skipped} steps skipped, not finite" if skipped else "")
        )


def read_rows(workdir):
    """Rows of a run's `metrics.jsonl`; a last line cut off by a kill is left out."""
    path = pathlib.Path(workdir) / "metrics.jsonl"
    if not path.is_file():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _num_cores():
    """Cores that this process may use, where the system tells; else all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def summarize(workdir):
    """Totals of a run from its rows.

    Returns:
        `{"seconds", "examples_per_second", "cpu_utilization", "peak_memory_mb",
        "phases": {name: {"steps", "non_finite_steps", "examples", "seconds",
        "examples_per_second"}}}`;
        `cpu_utilization` is the share of all cores that was busy while training.
    """
    rows = read_rows(workdir)
    phases, start = {}, 0.0
    for row in rows:  # the last row of each phase stays
        phases[row["phase"]] = row
    summary = {}
    for name, row in phases.items():
        seconds = row["seconds"] - start
        start = row["seconds"]
        summary[name] = {
            "steps": row["step"],
            "non_finite_steps": int(row["non_finite_steps"]),
            "examples": row["examples"],
            "seconds": round(seconds, 1),
            "examples_per_second": round(row["examples"] / seconds, 1),
        }
    seconds = rows[-1]["seconds"]
    examples = sum(phase["examples"] for phase in summary.values())
    return {
        "seconds": round(seconds, 1),
        "examples_per_second": round(examples / seconds, 1),
        "cpu_utilization": round(rows[-1]["cpu_seconds"] / seconds / _num_cores(), 3),
        "peak_memory_mb": max(row["peak_memory_mb"] for row in rows),
        "phases": summary,
    }
