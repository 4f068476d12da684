"""Processes that streamskit starts beside its own, most of them Java: launched, looked at, frozen, ended."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

TERM_SECONDS = 10.0
KILL_SECONDS = 10.0
FREEZE_SECONDS = 5.0

LIFELINE = (
    'leaves=$1; shift; "$@" </dev/null >&2 & echo $!; read -r ended; kill -9 $! 2>/dev/null; wait $! 2>/dev/null; '
    'if [ -z "$ended" ] && [ -n "$leaves" ]; then rm -rf -- "$leaves"; fi'
)
"""Runs a program until this shell's standard input ends, as it does however the process at its other end dies.

If that process had no time to write a line there, a folder that the program leaves behind is removed as well.
"""


def launch(
    command: Sequence[str], folder: Path, said: Path, environment: Mapping[str, str] | None = None
) -> psutil.Process:
    """Start a program as a process of its own, which a Ctrl-C in this terminal or notebook does not reach.

    Args:
        command: the program and its arguments.
        folder: where it works.
        said: the file for what it writes.
        environment: its environment variables; those of this process when not given.
    """
    with said.open("wb") as console:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    child.returncode = 0  # psutil watches the process from here; Popen would warn that it outlives its object
    return psutil.Process(child.pid)


class Dependent:
    """A program that ends with this process, also when this process is killed and has no time to end it.

    Args:
        command: the program and its arguments.
        folder: where it works.
        said: the file for what it writes.
        environment: its environment variables.
        leaves: a folder that is removed with it when this process is killed.

    >>> Dependent(["sleep", "60"], Path("/tmp"), Path("/tmp/said"), os.environ).process.is_running()  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        said: Path,
        environment: Mapping[str, str],
        leaves: Path | None = None,
    ) -> None:
        with said.open("wb") as console:
            self._lifeline = subprocess.Popen(
                ["sh", "-c", LIFELINE, "sh", str(leaves or ""), *command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=console,
                start_new_session=True,
            )
        assert self._lifeline.stdout is not None
        self.process = psutil.Process(int(self._lifeline.stdout.readline()))

    def end(self, orderly: bool = True) -> None:
        """End the program by SIGTERM, then SIGKILL after ten seconds; if not orderly, by SIGKILL. Waits for it."""
        end(self.process, orderly)
        self.let_go()

    def let_go(self) -> None:
        """End the lifeline of a program that has ended; what the program leaves behind stays."""
        if self._lifeline.stdin is not None and not self._lifeline.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._lifeline.stdin.write(b"ended\n")
                self._lifeline.stdin.close()
        if self._lifeline.stdout is not None:
            self._lifeline.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._lifeline.wait(KILL_SECONDS)


def alive(process: psutil.Process) -> bool:
    """Whether the process runs, paused or not; one that has ended and waits for its parent does not."""
    try:
        # a killed JVM is listed as a zombie while its last threads still hold its port and files
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def command_line(process: psutil.Process) -> list[str]:
    """Return the command line of a process as a list; empty if it has ended, or if others may not see it."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def name_of(process: psutil.Process) -> str:
    """Return the name of a process, such as java; "" once it has ended."""
    try:
        return process.name()
    except psutil.Error:
        return ""


def listened_ports(process: psutil.Process) -> set[int]:
    """Return the TCP ports on which the process itself, and not another one, waits for connections."""
    try:
        connections = process.net_connections("tcp")
    except psutil.Error:  # it has ended, or is just beginning
        return set()
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}


def end(process: psutil.Process, orderly: bool) -> bool:
    """End a process by SIGTERM, then SIGKILL after ten seconds; if not orderly, by SIGKILL. Waits for it.

    Returns:
        Whether it has ended.
    """
    try:
        if orderly:
            process.terminate()
            process.resume()  # a paused process handles SIGTERM only when it runs again
            if _gone(process, TERM_SECONDS):
                return True
        process.kill()
        return _gone(process, KILL_SECONDS)
    except psutil.NoSuchProcess:
        return True


def freeze(process: psutil.Process) -> None:
    """Stop a process with SIGSTOP and return when all of it has stopped: its threads stop one after the other."""
    process.suspend()
    eventually(lambda: process.status() == psutil.STATUS_STOPPED, FREEZE_SECONDS)


def eventually(condition: Callable[[], object], seconds: float) -> bool:
    """Check a condition until it is true or `seconds` have passed; return whether it became true."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.1, 0.1)  # polling often for long keeps what is polled from its work
    return True


def wait_until(condition: Callable[[], object], awaited: str, seconds: float = 120) -> None:
    """Check a condition again and again until it is true.

    Args:
        condition: a function without parameters.
        awaited: what is waited for, in words; the error says that it did not come.
        seconds: how long to wait at most.

    Raises:
        TimeoutError: the condition did not come true in time.

    >>> wait_until(lambda: 2 < 1, "the second executor", seconds=0.1)
    Traceback (most recent call last):
    TimeoutError: Waited 0.1 seconds for the second executor, which did not come.
    """
    if not eventually(condition, seconds):
        raise TimeoutError(f"Waited {seconds:g} seconds for {awaited}, which did not come.")


def _gone(process: psutil.Process, seconds: float) -> bool:
    """Whether the process ended in time; it stays listed until the process that started it looks."""
    ended = eventually(lambda: not alive(process), seconds)
    with contextlib.suppress(psutil.TimeoutExpired, psutil.NoSuchProcess):
        process.wait(timeout=0)
    return ended
