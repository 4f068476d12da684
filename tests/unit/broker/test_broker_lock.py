"""The lock file and the choice of ports; no broker takes part."""

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from streamskit.broker import settings
from streamskit.broker.java_process import BrokerLock, read_lock
from streamskit.environment.identity import process_start


def lock_of(process: psutil.Process) -> BrokerLock:
    return BrokerLock(process.pid, process_start(process.pid) or "", "127.0.0.1:20001", "embedded", "/data")


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = lock_of(psutil.Process())
    lock.write(tmp_path / "broker.json")
    assert read_lock(tmp_path / "broker.json") == lock


def test_a_lock_of_a_living_process_gives_that_process() -> None:
    process = lock_of(psutil.Process()).process()
    assert process is not None
    assert process.pid == os.getpid()


def test_a_lock_of_an_ended_process_is_stale() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lock = lock_of(psutil.Process(child.pid))
    child.kill()
    child.wait()
    assert lock.process() is None


def test_a_lock_whose_pid_now_belongs_to_another_process_is_stale() -> None:
    now = psutil.Process()
    assert BrokerLock(now.pid, "another time", "127.0.0.1:20001", "embedded", "/data").process() is None


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "broker.json") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x", "started": 1}'])
def test_a_damaged_lock_is_no_lock_and_a_log_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "broker.json").write_text(text)
    with caplog.at_level(logging.WARNING):
        assert read_lock(tmp_path / "broker.json") is None
    assert "damaged" in caplog.text


def test_a_port_that_someone_listens_on_is_not_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert not settings.is_free(server.getsockname()[1])


def test_a_free_port_is_outside_the_range_of_outgoing_connections() -> None:
    port = settings.free_port()
    assert settings.is_free(port)
    assert port in settings.CANDIDATES
