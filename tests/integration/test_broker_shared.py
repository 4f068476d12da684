"""The one broker of a project: found, started once, replaced when it is gone, and its command line."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from streamskit.broker import (
    EmbeddedBroker,
    ExternalBroker,
    find_shared_broker,
    shared_broker,
    stop_shared_broker,
)
from streamskit.broker.base import Broker
from streamskit.broker.java_process import BrokerLock
from streamskit.broker.shared import clean_shared_broker
from streamskit.common.errors import BrokerError
from streamskit.environment.identity import process_start

pytestmark = pytest.mark.broker

VARIABLE = "STREAMSKIT_BOOTSTRAP_SERVERS"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project of these tests' own; its broker runs on from test to test, which is what it is for."""
    folder = tmp_path_factory.mktemp("project")
    yield folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMSKIT_PROJECT", str(folder))
        patch.delenv(VARIABLE, raising=False)
        stop_shared_broker()


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    return folder


def lock_of(project: Path) -> dict[str, object]:
    return json.loads((project / ".streamskit" / "broker.json").read_text())


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "streamskit", "broker", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def test_the_lock_file_says_which_process_is_the_broker(project: Path) -> None:
    broker = shared_broker()
    assert isinstance(broker, EmbeddedBroker)
    lock = lock_of(project)
    assert set(lock) == {"pid", "started", "bootstrap_servers", "kind", "data_dir"}
    assert lock["bootstrap_servers"] == broker.bootstrap_servers
    assert lock["data_dir"] == str(project / ".streamskit" / "broker")
    assert process_start(int(str(lock["pid"]))) == lock["started"]


def test_everyone_gets_the_same_broker(project: Path, name: str) -> None:
    shared_broker().create_topics(name)
    pid = lock_of(project)["pid"]
    assert name in shared_broker().topics()
    assert lock_of(project)["pid"] == pid


def test_two_programs_that_start_at_once_get_one_broker(project: Path) -> None:
    stop_shared_broker()
    program = "from streamskit.broker import shared_broker; print(shared_broker().process.pid)"
    starters = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [starter.communicate(timeout=120)[0].split()[-1] for starter in starters]
    assert answers[0] == answers[1] == str(lock_of(project)["pid"])


def test_a_stale_lock_is_replaced_by_a_new_broker_on_the_same_data(
    project: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = shared_broker()
    broker.create_topics(name)
    address = broker.bootstrap_servers
    broker.kill()
    with caplog.at_level(logging.WARNING):
        again = shared_broker()
    assert "is gone; starting it anew on its data" in caplog.text
    assert again.bootstrap_servers == address
    assert name in again.topics()


def test_a_lock_of_another_process_with_the_same_number_is_stale(project: Path, name: str) -> None:
    shared_broker().create_topics(name)
    stop_shared_broker()
    lock = {
        "pid": os.getpid(),
        "started": "another time",
        "kind": "embedded",
        "data_dir": "x",
        "bootstrap_servers": "127.0.0.1:9",
    }
    (project / ".streamskit" / "broker.json").write_text(json.dumps(lock))
    assert name in shared_broker().topics()
    assert lock_of(project)["pid"] != os.getpid()


def test_a_broker_that_does_not_answer_is_ended_and_replaced(
    project: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    shared_broker().create_topics(name)
    stop_shared_broker()
    hanging = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    BrokerLock(hanging.pid, process_start(hanging.pid) or "", "127.0.0.1:9", "embedded", "x").write(
        project / ".streamskit" / "broker.json"
    )
    with caplog.at_level(logging.WARNING):
        assert name in shared_broker().topics()
    assert "does not answer at 127.0.0.1:9" in caplog.text
    assert hanging.wait(timeout=10) != 0


def test_a_paused_broker_goes_on_when_it_is_asked_for(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    shared_broker().pause()
    pid = lock_of(project)["pid"]
    with caplog.at_level(logging.WARNING):
        assert shared_broker().topics() is not None
    assert "was paused" in caplog.text
    assert lock_of(project)["pid"] == pid


def test_a_broker_restarted_by_one_program_is_the_broker_of_all(project: Path) -> None:
    mine, yours = shared_broker(), shared_broker()
    mine.kill()
    mine.restart()
    assert yours.is_running
    assert yours.topics() == mine.topics()


def test_a_with_block_leaves_a_broker_running_that_ran_before(project: Path) -> None:
    with shared_broker() as broker:
        pass
    assert broker.is_running


def test_the_command_line_starts_stops_and_tells(project: Path, name: str) -> None:
    stop_shared_broker()
    assert "No broker is running" in command("status").stdout
    assert command("status").returncode == 1
    started = command("start")
    assert started.returncode == 0
    assert f"The broker is ready at {lock_of(project)['bootstrap_servers']}" in started.stdout
    assert "already runs" in command("start").stdout
    shared_broker().create_topics(name)
    assert f"{name}: 1 partition(s)" in command("status").stdout
    assert "its data stays" in command("stop").stdout
    assert find_shared_broker() is None
    assert "No broker was running" in command("stop").stdout


def test_the_command_line_explains_itself(project: Path) -> None:
    helped = command("--help")
    assert helped.returncode == 0
    assert all(word in helped.stdout for word in ("start", "stop", "status", "clean", "remove all its data"))


def test_cleaning_stops_the_broker_and_removes_its_data(project: Path) -> None:
    broker = shared_broker()
    assert clean_shared_broker()
    assert not broker.is_running
    assert not (project / ".streamskit" / "broker").exists()
    assert not (project / ".streamskit" / "broker.json").exists()
    assert not clean_shared_broker()


def test_an_external_broker_serves_and_refuses_to_be_stopped(
    project: Path, broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, broker.bootstrap_servers)
    external = shared_broker()
    assert isinstance(external, ExternalBroker)
    with external:
        external.create_topics(name)
        external.produce(name, [("k", "v")])
        assert external.consume(name)["value"].tolist() == ["v"]
    actions = (
        external.start,
        external.stop,
        external.kill,
        external.restart,
        external.pause,
        external.resume,
    )
    for action in (*actions, stop_shared_broker, clean_shared_broker):
        with pytest.raises(BrokerError, match="runs outside this project"):
            action()
    assert broker.is_running


def test_an_external_broker_that_does_not_answer_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "127.0.0.1:9")
    assert not shared_broker().is_running
    with pytest.raises(BrokerError, match=r"No Kafka broker answers at 127\.0\.0\.1:9\."), shared_broker():
        pass
    told = command("status")
    assert told.returncode == 1
    assert "No Kafka broker answers at 127.0.0.1:9" in told.stderr
    assert "Traceback" not in told.stderr
