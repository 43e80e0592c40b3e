"""Processes that tests start, none of which outlives its test."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]


def run_all(commands, timeout=300):
    """Runs Python programs side by side, each to its end.

    Args:
        commands: `(arguments, environment)` of each: of the interpreter, and variables
            besides those of this process.
        timeout: seconds that each is waited for.

    Returns:
        Their exit statuses.

    Raises:
        subprocess.TimeoutExpired: after which, as after every error, none is left.
    """
    with contextlib.ExitStack() as stack:
        processes = []
        for arguments, environment in commands:
            process = subprocess.Popen(
                [sys.executable, *map(str, arguments)],
                env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
                cwd=ROOT,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)  # comes before the wait
            processes.append(process)
        return [process.wait(timeout) for process in processes]


def free_ports(count):
    """Ports of this machine that nobody listens on, no two of them equal."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
