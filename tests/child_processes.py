"""Processes that tests start, none of which outlives its test.

Each is forked from one that has imported TensorFlow, which takes seconds to import.
"""

import contextlib
import multiprocessing
import os
import pathlib
import runpy
import socket
import subprocess
import sys
import tempfile

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["tests.preloaded"])


def run(arguments, environment=None, folder=None, timeout=300):
    """Runs a Python program to its end.

    Args:
        arguments: of the interpreter, such as `-m` and a module, a file, or `-c` and
            code; then those of the program.
        environment: variables besides those of this process.
        folder: to run it in; the one that this process is in otherwise.
        timeout: seconds that it is waited for.

    Returns:
        A `subprocess.CompletedProcess` with the texts of both streams.

    Raises:
        subprocess.TimeoutExpired: after which, as after every error, it is gone.
    """
    return _run_all([(arguments, environment or {})], folder, timeout)[0]


def run_all(commands, timeout=300):
    """Runs Python programs side by side, each to its end; prints what they printed.

    Args:
        commands: `(arguments, environment)` of each, as of `run`.
        timeout: seconds that each is waited for.

    Returns:
        Their exit statuses.

    Raises:
        subprocess.TimeoutExpired: after which, as after every error, none is left.
    """
    processes = _run_all(commands, None, timeout)
    for process in processes:
        print(process.stdout)
        print(process.stderr, file=sys.stderr)
    return [process.returncode for process in processes]


def _run_all(commands, folder, timeout):
    with contextlib.ExitStack() as stack:
        streams = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = []
        for number, (arguments, environment) in enumerate(commands):
            arguments = [*map(str, arguments)]
            stream = streams / str(number)
            environment = os.environ | environment
            process = _FORKED.Process(
                target=_become,
                args=(arguments, environment, folder or os.getcwd(), stream),
            )
            process.start()
            stack.callback(process.join)
            stack.callback(process.kill)  # comes before the wait
            processes.append((process, arguments, stream))
        return [_end(*each, timeout) for each in processes]


def _become(arguments, environment, folder, stream):
    """Turns a forked process into a program."""
    for descriptor, suffix in ((1, ".out"), (2, ".err")):
        with open(stream.with_suffix(suffix), "wb") as file:
            os.dup2(file.fileno(), descriptor)
    os.environ.update(environment)
    os.chdir(folder)
    kind, *rest = arguments
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "-c", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


def _end(process, arguments, stream, timeout):
    process.join(timeout)
    if process.exitcode is None:
        raise subprocess.TimeoutExpired(arguments, timeout)
    texts = [
        stream.with_suffix(suffix).read_text(errors="replace")
        for suffix in (".out", ".err")
    ]
    return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def free_ports(count):
    """Ports of this machine that nobody listens on, no two of them equal."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
