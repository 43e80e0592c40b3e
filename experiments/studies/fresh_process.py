"""Measurements in a process of their own, so that its peak memory is theirs alone."""

import json
import os
import subprocess
import sys
import time

import tensorflow as tf
from absl import flags

from basic_tf import memory
from experiments import command_line

_OUTPUT = flags.DEFINE_string("output", None, "Folder for table.json and report.html.")
_QUICK = flags.DEFINE_boolean("quick", False, "A smaller table, for a first look.")
_MEASURE = flags.DEFINE_string(
    "measure", None, "One row of the table, as JSON: measured and printed as JSON."
)


def run(study, measure_row=None):
    """The program of a study.

    Args:
        study: `(folder of the results, whether to be quick)`; it calls `measure`.
        measure_row: from the fields of a row, by keyword, to its numbers; called in a
            process of its own for each row. None where a study never calls `measure`.
    """

    def main(arguments):
        command_line.refuse(arguments)
        if _MEASURE.value:
            print(json.dumps(measure_row(**json.loads(_MEASURE.value))))
        elif _OUTPUT.value:
            study(_OUTPUT.value, _QUICK.value)
        else:
            raise ValueError("name a folder for the results: --output DIR")

    command_line.run(main)


def measure(row, environment=None):
    """Measures a row of the running study's table in a fresh process.

    Args:
        row: dictionary, what is to be measured.
        environment: variables that the process has besides those of this one.

    Returns:
        `row` with the numbers that the process printed.

    Raises:
        ChildProcessError: with the process's last lines, if it failed.
    """
    module = sys.modules["__main__"].__spec__.name
    command = [sys.executable, "-m", module, "--measure", json.dumps(row)]
    variables = os.environ | (environment or {})
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    if done.returncode:
        raise ChildProcessError(f"{row}: {done.stderr[-2000:]}")
    result = row | json.loads(done.stdout.splitlines()[-1])
    print(result, flush=True)
    return result


def time_and_memory(function, arguments, repetitions):
    """What a call takes, without its tracing.

    Args:
        function: a `tf.function`.
        arguments: tuple.
        repetitions: number of calls.

    Returns:
        `{"seconds", "cpu_seconds"}` of the fastest call, and `"step_memory_mb"`, the
        peak of this process over what it held before the first call.
    """
    function.get_concrete_function(*arguments)
    before = memory.forget_peak()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter(), time.process_time()
        tf.nest.flatten(function(*arguments))[0].numpy()  # waits for it
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = (min(column) for column in zip(*times, strict=True))
    return {
        "seconds": round(wall, 4),
        "cpu_seconds": round(cpu, 4),
        "step_memory_mb": memory.peak_memory_mb() - before,
    }
