"""The lock file and the choice of ports; no broker takes part."""

import logging
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamskit.broker import EmbeddedBroker, EmbeddedCluster, settings
from streamskit.broker.java_process import BrokerLock, read_lock
from streamskit.common.errors import BrokerError
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


def test_a_port_that_is_promised_to_another_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "CANDIDATES", range(20_000, 20_200))
    monkeypatch.setattr(settings, "is_free", lambda port: port < 20_003)
    drawn: list[int] = []
    for _ in range(3):
        drawn.append(settings.free_port(apart_from=drawn))
    assert sorted(drawn) == [20_000, 20_001, 20_002]


def test_no_two_nodes_of_a_cluster_get_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "CANDIDATES", range(20_000, 20_200))
    monkeypatch.setattr(settings, "is_free", lambda port: port < 20_018)
    nodes = EmbeddedCluster(nodes=9)._made()
    listeners = ",".join(node._settings["listeners"] for node in nodes.values())
    assert sorted(re.findall(r":(\d+)", listeners)) == [str(port) for port in range(20_000, 20_018)]


@pytest.mark.parametrize("port", [-1, 65_536, 99_999, "9092", 9092.0, True])
def test_what_is_no_port_is_refused_at_once(port: Any) -> None:
    with pytest.raises(BrokerError, match=rf"^port={port!r} is not a number from 1 to 65535\. Give one, or leave it"):
        EmbeddedBroker(port=port)


def test_port_0_is_a_free_one(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, port=0)
    assert broker._choose_port() in settings.CANDIDATES
    with pytest.raises(BrokerError, match="no address before its first start"):
        _ = broker.bootstrap_servers
