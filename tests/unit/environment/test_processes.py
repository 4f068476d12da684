"""Processes that streamskit starts: they end when told, and with the program that started them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from streamskit.environment.processes import Dependent, alive, end, launch, listened_ports, wait_until

HOLDS = """
import os, pathlib, sys, time
from streamskit.environment.processes import Dependent
held = Dependent(["sleep", "60"], pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1], "said"), os.environ)
print(held.process.pid, flush=True)
time.sleep(60)
"""


def test_a_dependent_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE)
    assert program.stdout is not None
    held = psutil.Process(int(program.stdout.readline()))
    assert alive(held)
    program.kill()
    program.wait()
    wait_until(lambda: not alive(held), "the end of the dependent program", 10)


def test_a_dependent_ends_when_told_and_writes_to_its_file(tmp_path: Path) -> None:
    said = tmp_path / "said"
    running = Dependent(["sh", "-c", "echo out; echo err >&2; exec sleep 60"], tmp_path, said, os.environ)
    wait_until(lambda: said.read_text() == "out\nerr\n", "what the program writes", 10)
    running.end()
    assert not alive(running.process)


def test_a_process_that_does_not_hear_sigterm_is_killed(tmp_path: Path) -> None:
    deaf = launch(["sh", "-c", "trap '' TERM; echo here; while :; do sleep 0.1; done"], tmp_path, tmp_path / "said")
    wait_until(lambda: (tmp_path / "said").read_text() == "here\n", "the program's word", 10)
    assert end(deaf, orderly=False)
    assert not alive(deaf)


def test_ending_what_has_ended_is_no_error(tmp_path: Path) -> None:
    short = launch(["true"], tmp_path, tmp_path / "said")
    wait_until(lambda: not alive(short), "the program's end", 10)
    assert end(short, orderly=True)


def test_the_ports_on_which_a_process_listens_are_its_own() -> None:
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))
        mine.listen()
        port = mine.getsockname()[1]
        assert port in listened_ports(psutil.Process())
        program = subprocess.Popen(["sleep", "60"])
        assert listened_ports(psutil.Process(program.pid)) == set()
        program.kill()
        program.wait()
    assert port not in listened_ports(psutil.Process())


def test_a_wait_that_ends_in_vain_says_what_did_not_come() -> None:
    with pytest.raises(TimeoutError, match=r"^Waited 0\.05 seconds for the second executor, which did not come\.$"):
        wait_until(lambda: False, "the second executor", seconds=0.05)
