"""Ends what a test run has started and left running, however the run ends: orderly, by Ctrl-C, or killed.

Every process of a run has its mark in its environment. A watcher in a session of its own hears, by the end of a pipe,
that the run is over, and ends all that have the mark, and their children.
"""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import psutil

from streamskit.environment.processes import command_line, eventually

MARK = "STREAMSKIT_TEST_RUN"
"""The environment variable with the mark of a run; a run inside a test of another one has its own."""

LEAVE_SECONDS = 5.0
"""How long what ends by itself may take: a JVM notices after a moment that its Python is gone."""

TERM_SECONDS = 10.0


class Reaper:
    """Watches over the processes that are started from now on."""

    def __init__(self) -> None:
        mark = uuid.uuid4().hex
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        self._watcher = subprocess.Popen(
            [sys.executable, __file__, mark],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        os.environ[MARK] = mark

    def reap(self) -> str:
        """End what still runs; returns a line for each process that did not end by itself."""
        os.environ.pop(MARK, None)
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        assert self._watcher.stdout is not None
        with self._watcher.stdout as said:
            lines = said.read()
        self._watcher.wait()
        return lines


def watch(mark: str) -> None:
    """Wait for the end of the run, and end what is left of it."""
    sys.stdin.read()
    if eventually(lambda: not list(marked(mark)), LEAVE_SECONDS):
        return
    left = with_children(marked(mark))
    for process in left:
        command = " ".join(command_line(process))[:100]
        _tell(f"{process.pid}: {command or 'it has just ended'}")
        _signal(process.terminate)
    eventually(lambda: not any(map(_runs, left)), TERM_SECONDS)
    while left := [process for process in {*left, *with_children(marked(mark))} if _runs(process)]:
        for process in left:
            _signal(process.kill)
        psutil.wait_procs(left, 1)


def marked(mark: str) -> Iterator[psutil.Process]:
    """The running processes that have a mark."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and _runs(process):
                yield process
        except (psutil.Error, OSError):
            continue


def with_children(processes: Iterator[psutil.Process]) -> list[psutil.Process]:
    """Processes and all that they have started, such as containers, which get no environment."""
    found = set[psutil.Process]()
    for process in processes:
        try:
            found |= {process, *process.children(recursive=True)}
        except psutil.Error:
            continue
    return list(found)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _signal(send: Callable[[], None]) -> None:
    with contextlib.suppress(psutil.Error):
        send()


def _tell(line: str) -> None:
    with contextlib.suppress(OSError):  # perhaps nobody listens any more
        print(line, flush=True)


if __name__ == "__main__":
    watch(sys.argv[1])
