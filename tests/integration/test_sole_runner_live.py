"""Two applications with one id: the broker knows that one runs, wherever the other is started."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from streamskit import KafkaStreams, State, StreamsBuilder
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.kafka.connection import admin_client
from streamskit.runtime import sole_runner
from streamskit.runtime.sole_runner import SoleRunner
from streamskit.testing import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.timeout(90)]

ELSEWHERE = """
import sys
from pathlib import Path
from streamskit import StreamsError
from streamskit.runtime import sole_runner
name, servers, machine, session = sys.argv[1:]
sole_runner.SESSION_SECONDS = float(session)
if machine:
    sole_runner._machine = lambda: machine
runner = sole_runner.SoleRunner(name, servers, Path("elsewhere"), lambda why: print(why, flush=True))
try:
    runner.claim(f"{name}-in")
    runner.confirm()
except StreamsError as refusal:
    sys.exit(print(refusal, flush=True))
print("runs", flush=True)
sys.stdin.read()
"""

Runner = Callable[..., SoleRunner]
Process = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def topic(broker: Broker, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")


@pytest.fixture
def short_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes a runner for dead after two seconds, where a test has to wait for that."""
    monkeypatch.setattr(sole_runner, "SESSION_SECONDS", 2.0)


@pytest.fixture
def runner(broker: Broker, name: str, tmp_path: Path) -> Iterator[Runner]:
    made: list[SoleRunner] = []

    def claim(lost: Callable[[StreamsError], None] = lambda why: None) -> SoleRunner:
        made.append(SoleRunner(name, broker.bootstrap_servers, tmp_path / f"folder-{len(made)}", lost))
        made[-1].claim(f"{name}-in")
        return made[-1]

    yield claim
    for each in made:
        each.release()


OF_ONE_NAME = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""Runs a command on what looks like a machine of its own, with processes that are numbered from 1."""


@pytest.fixture
def process(broker: Broker, name: str) -> Iterator[Process]:
    """Starts a process that runs the application, on a machine of that name; without one on this machine.

    `within` is a command that runs it elsewhere; for an `answer` of "" nobody waits.
    """
    started: list[subprocess.Popen[str]] = []

    def start(machine: str = "", within: Sequence[str] = (), answer: str = "runs") -> "subprocess.Popen[str]":
        command = [
            *within,
            sys.executable,
            "-c",
            ELSEWHERE,
            name,
            broker.bootstrap_servers,
            machine,
            str(sole_runner.SESSION_SECONDS),
        ]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert not answer or said_by(started[-1]) == answer
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


@pytest.fixture
def on_a_twin() -> list[str]:
    """Return a command that runs another on a new machine, which has the name of all that are made so."""
    command = [*OF_ONE_NAME, "sh", "-c", 'hostname twin && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("Machines of one name are made with namespaces, which this user may not have.")
    return command


def said_by(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_second_is_refused_at_once_and_told_where_the_first_one_runs(process: Process, runner: Runner) -> None:
    first = process("another-machine")
    began = time.monotonic()
    with pytest.raises(
        StreamsError,
        match=rf"is running already: process {first.pid} on 'another-machine', since .* the folder .*where",
    ):
        runner().confirm()
    assert time.monotonic() - began < 15


def test_two_machines_of_one_name_and_with_the_same_process_numbers_are_told_apart(
    process: Process, on_a_twin: list[str]
) -> None:
    first = process(within=on_a_twin)
    with pytest.raises(AssertionError, match="is running already"):
        process(within=on_a_twin)
    assert first.poll() is None


def test_when_the_first_one_is_closed_the_second_may_run(runner: Runner) -> None:
    first = runner()
    first.confirm()
    with pytest.raises(StreamsError, match="is running already"):
        runner().confirm()
    first.release()
    runner().confirm()


def test_a_driver_killed_on_this_machine_starts_again_at_once(
    process: Process, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sole_runner, "SESSION_SECONDS", 60.0)  # so long the group would count on the dead one
    killed = process()
    killed.kill()
    killed.wait()
    began = time.monotonic()
    runner().confirm()
    assert time.monotonic() - began < 30


def test_one_killed_while_its_group_was_being_agreed_is_not_waited_for_either(
    broker: Broker, name: str, process: Process, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sole_runner, "SESSION_SECONDS", 60.0)

    def is_being_agreed() -> bool:
        with admin_client(broker.connection) as admin:
            described = admin.describe_groups([f"{name}-runner"])[f"{name}-runner"]
        return len(described["members"]) == 2 and described["group_state"] != "Stable"

    first = process()
    first.send_signal(signal.SIGSTOP)
    second = process(answer="")
    wait_until(is_being_agreed, "a group that is about to agree", 60)
    for each in (first, second):
        each.kill()
        each.wait()
    began = time.monotonic()
    runner().confirm()
    assert time.monotonic() - began < 30


def test_one_killed_on_another_machine_is_waited_for_as_long_as_its_session_and_told_of(
    process: Process, runner: Runner, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sole_runner, "SESSION_SECONDS", 5.0)  # a machine may stand still for a moment
    killed = process("another-machine")
    killed.kill()
    killed.wait()
    began = time.monotonic()
    runner().confirm()
    assert time.monotonic() - began < 25
    assert f"process {killed.pid} on 'another-machine'" in caplog.text
    assert "which may have died: waiting for a sign of life of it, at most 5 s" in caplog.text


@pytest.mark.parametrize("round_", range(3))
def test_of_several_that_start_at_once_one_runs(round_: int, runner: Runner) -> None:
    several = [runner() for _ in range(4)]
    refused = []
    for each in several:
        try:
            each.confirm()
        except StreamsError as failure:
            refused.append(str(failure))
    assert len(refused) == 3
    assert all("is running already" in said for said in refused)


@pytest.mark.usefixtures("short_session")
def test_one_that_was_out_of_touch_while_another_took_over_stops(process: Process, runner: Runner) -> None:
    paused = process()
    paused.send_signal(signal.SIGSTOP)
    second = runner()
    second.confirm()  # when the session of the first one is over
    paused.send_signal(signal.SIGCONT)
    assert "was out of touch with its broker for more than 2 s, and another one has taken over" in said_by(paused)
    with pytest.raises(StreamsError, match="is running already"):
        runner().confirm()


@pytest.mark.spark
def test_an_application_with_another_folder_is_refused_and_so_is_its_clean_up(
    broker: Broker, name: str, tmp_path: Path
) -> None:
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(f"{name}-out")
    topology = builder.build()

    def streams(folder: str) -> KafkaStreams:
        return KafkaStreams(topology, name, broker.bootstrap_servers, state_dir=tmp_path / folder)

    broker.produce(f"{name}-in", [("a", "x")])
    with streams("here") as first:
        second = streams("there")
        with pytest.raises(
            StreamsError,
            match=rf"is running already: .*KafkaStreams\.running\['{name}'\]\.close\(\), or .*two with one id would",
        ):
            second.start()
        assert second.state is State.NOT_RUNNING
        with pytest.raises(StreamsError, match="is running already"):
            streams("there").clean_up()
        first.await_processed()
        assert first.state is State.RUNNING
        assert KafkaStreams.running[name] is first
    assert len(broker.consume(f"{name}-out")) == 1
