"""Processes that streamskit starts: they end when told, and with the program that started them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from streamskit.environment.processes import (
    Dependent,
    alive,
    command_line,
    end,
    launch,
    listened_ports,
    name_of,
    wait_until,
)

HOLDS = """
import os, pathlib, sys, time
from streamskit.environment.processes import Dependent
folder, leaves = map(pathlib.Path, sys.argv[1:])
held = Dependent(["sleep", "60"], folder, folder / "said", os.environ, leaves)
print(held.process.pid, flush=True)
sys.stdin.readline()
held.end()
"""


def holder(folder: Path, leaves: Path) -> tuple["subprocess.Popen[bytes]", psutil.Process]:
    """Start a program that holds a dependent one, which leaves a folder behind."""
    leaves.mkdir()
    (leaves / "data").write_text("much of it")
    program = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder), str(leaves)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert program.stdout is not None
    return program, psutil.Process(int(program.stdout.readline()))


def test_a_dependent_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program, held = holder(tmp_path, tmp_path / "it leaves -rf")
    assert alive(held)
    program.kill()
    program.wait()
    wait_until(lambda: not alive(held), "the end of the dependent program", 10)
    wait_until(lambda: not (tmp_path / "it leaves -rf").exists(), "the end of what it leaves behind", 10)
    assert (tmp_path / "said").exists()


def test_what_a_dependent_leaves_stays_where_it_was_ended_in_order(tmp_path: Path) -> None:
    program, held = holder(tmp_path, tmp_path / "data")
    program.communicate(b"end\n", timeout=30)
    assert not alive(held)
    assert (tmp_path / "data" / "data").read_text() == "much of it"


def test_letting_go_of_a_dependent_that_ended_by_itself_is_no_error(tmp_path: Path) -> None:
    short = Dependent(["true"], tmp_path, tmp_path / "said", os.environ, tmp_path / "stays")
    (tmp_path / "stays").mkdir()
    wait_until(lambda: not alive(short.process), "the program's end", 10)
    short.let_go()
    short.end()
    assert (tmp_path / "stays").is_dir()


def test_a_dependent_ends_when_told_and_writes_to_its_file(tmp_path: Path) -> None:
    said = tmp_path / "said"
    running = Dependent(["sh", "-c", "echo out; echo err >&2; exec sleep 60"], tmp_path, said, os.environ)
    wait_until(lambda: said.read_text() == "out\nerr\n", "what the program writes", 10)
    running.end()
    assert not alive(running.process)


def test_a_process_that_ended_and_has_no_command_line_and_in_the_end_no_name() -> None:
    with subprocess.Popen(["sleep", "0"]) as ended:
        process = psutil.Process(ended.pid)
        wait_until(lambda: not alive(process), "the end of sleep", 10)
        with pytest.raises(psutil.ZombieProcess):
            process.cmdline()
        assert command_line(process) == []
    assert command_line(process) == []
    assert name_of(process) == ""


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
