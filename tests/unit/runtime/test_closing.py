"""What a `KafkaStreams` lets go of when it is closed: all of it, whatever goes wrong on the way."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamskit import KafkaStreams, State, StreamsBuilder, StreamsError, spark_tasks
from streamskit.queries.query_server import QueryServer
from streamskit.queries.rest.server import bind
from streamskit.runtime.sole_runner import ApplicationLock
from streamskit.runtime.supervisor import STARTING
from streamskit.views.views_page import ViewsPage


def application(folder: Path) -> KafkaStreams:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count("counts")
    return KafkaStreams(builder.build(), "app", "127.0.0.1:1", application_server="127.0.0.1:0", state_dir=folder)


def port_of(streams: KafkaStreams) -> int:
    assert streams.query_server is not None
    return streams.query_server.here.port


def full(*anything: object, **named: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("part", ["group_offsets", "copies", "side_effects", "supervisor", "_runner"])
def test_an_application_that_cannot_be_closed_in_order_lets_go_of_all_the_same(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = application(tmp_path)
    inside = streams._application
    inside.lock.take(())
    KafkaStreams.running["app"] = streams
    inside.states.hold(STARTING)
    released: list[str] = []
    monkeypatch.setattr(inside._runner, "release", lambda seconds: released.append("the runner"))
    broken = getattr(inside, part)
    broken = broken.instance if isinstance(broken, QueryServer) else broken
    monkeypatch.setattr(broken, "release" if part == "_runner" else "stop", full)
    with pytest.raises(StreamsError, match=r"The disk is full that has the folder of 'app'"):
        streams.close()
    assert streams.state is State.NOT_RUNNING
    assert "app" not in KafkaStreams.running
    assert released == ([] if part == "_runner" else ["the runner"])
    again = ApplicationLock("app", streams.folder)
    again.take(())
    again.release()
    bind("127.0.0.1", port_of(streams)).close()


def test_what_is_closed_before_its_start_keeps_no_port(tmp_path: Path) -> None:
    streams = application(tmp_path)
    assert streams.close()
    assert streams.state is State.NOT_RUNNING
    assert streams.query_server is not None
    assert streams.query_server.rest._socket.fileno() == -1


def test_the_plan_of_an_object_that_was_not_started_is_refused_with_the_name_of_the_one_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = application(tmp_path), application(tmp_path)
    monkeypatch.setitem(KafkaStreams.running, "app", first)
    with pytest.raises(StreamsError, match=r"no Spark query until .* runs with its id, KafkaStreams\.running\['app'"):
        second.explain()
    first.close()
    second.close()


@pytest.mark.parametrize("question", [KafkaStreams.metrics, KafkaStreams.queries, spark_tasks])
def test_what_an_object_that_was_not_started_has_done_is_not_told_as_nothing_while_another_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: Callable[[KafkaStreams], Any]
) -> None:
    first, second = application(tmp_path), application(tmp_path)
    assert len(question(second)) == 0
    monkeypatch.setitem(KafkaStreams.running, "app", first)
    with pytest.raises(StreamsError, match=r"'app' has not been started\. .* KafkaStreams\.running\['app'\]: use that"):
        question(second)
    first.close()
    second.close()


def test_why_an_application_did_not_start_is_told_though_it_cannot_be_closed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    streams = application(tmp_path)
    inside = streams._application

    def refuse(busy: int) -> None:
        raise StreamsError("a topic is missing")

    monkeypatch.setattr(inside, "claim", refuse)
    monkeypatch.setattr(inside.side_effects, "stop", full)
    with pytest.raises(StreamsError, match="a topic is missing"):
        streams.start()
    assert "'app' did not start, and could not be closed in order: The disk is full" in caplog.text
    assert streams.state is State.NOT_RUNNING


def test_a_query_that_fails_while_the_next_one_starts_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = application(tmp_path)
    inside, ready = streams._application, SimpleNamespace(copy=lambda plans: None)
    inside.states.hold(STARTING)
    for part in ("side_effects", "copies", "global_copies", "_watchdog", "_purging", "group_offsets", "threads"):
        monkeypatch.setattr(getattr(inside, part), "start", lambda: None)
    monkeypatch.setattr(inside.supervisor.broker, "start", lambda: None)
    monkeypatch.setattr(inside, "_spark", object())
    monkeypatch.setattr(inside, "_checks", SimpleNamespace(prepare=lambda *how: {}, note=lambda: None, about=None))
    monkeypatch.setattr(inside, "checkpoint_copies", ready)
    monkeypatch.setattr(inside, "_catch_up", lambda deadline: pytest.fail("the start went on"))
    monkeypatch.setattr(inside, "_start_query", lambda topics, plan: inside.supervisor.fail(StreamsError("no")))
    with pytest.raises(StreamsError, match="no"):
        inside.run()


@pytest.mark.parametrize(
    ("stage", "failure"),
    [
        ("in_chosen_mode", None),
        ("claim", None),
        ("run", None),
        ("run", StreamsError("The stores are not read any more.")),
    ],
)
def test_an_application_that_is_closed_while_it_starts_does_not_run_on(
    stage: str, failure: StreamsError | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = application(tmp_path)
    inside = streams._application
    began, closed, stopped = threading.Event(), threading.Event(), list[bool]()

    def reach(*anything: object) -> object:
        began.set()
        assert closed.wait(20), "close() did not return"
        if failure is not None:  # of what was closed meanwhile
            raise failure
        return inside

    for each in ("claim", "run"):
        monkeypatch.setattr(inside, each, lambda *anything: None)
    monkeypatch.setattr(inside, stage, reach)
    stop = inside.stop

    def noted_stop(*how: Any) -> bool:
        stopped.append(closed.is_set())
        return stop(*how)

    monkeypatch.setattr(inside, "stop", noted_stop)
    monkeypatch.setattr(KafkaStreams, "running", {})
    refusals: list[StreamsError] = []

    def start() -> None:
        try:
            streams.start()
        except StreamsError as refusal:
            refusals.append(refusal)

    starting = threading.Thread(target=start)
    starting.start()
    assert began.wait(20), "start() did not begin"
    streams.close()
    closed.set()
    starting.join(20)
    assert [str(refusal) for refusal in refusals] == ["'app' was closed while it started: make a new KafkaStreams."]
    assert streams.state is State.NOT_RUNNING
    assert stopped == [False, True], "what was started after the close was not stopped"
    assert KafkaStreams.running == {}


def test_pausing_has_to_wait_for_the_end_of_the_start(tmp_path: Path) -> None:
    streams = application(tmp_path)
    streams._application.states.hold(STARTING)
    with pytest.raises(StreamsError, match=r"'app' is starting: pause\(\) it when start\(\) has returned\."):
        streams.pause()
    streams.close()


def test_a_signal_that_closes_an_application_during_a_pause_is_heeded(tmp_path: Path) -> None:
    streams = application(tmp_path)
    supervisor = streams._application.supervisor
    streams._application.states.hold("a query")
    streams._application.states.release("a query")
    query = SimpleNamespace(
        plan=SimpleNamespace(name="0"),
        interrupt=lambda why, finish: time.sleep(1),  # a micro-batch takes so long to end
        stop=lambda finish=0.0: None,
        close_producers=lambda: None,
    )
    supervisor.queries.append(query)  # type: ignore[arg-type]
    closed: list[bool] = []
    before = signal.signal(signal.SIGTERM, lambda *anything: closed.append(streams.close("5 seconds")))
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        streams.pause()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert closed == [True]


def test_closing_takes_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = application(tmp_path)
    inside = streams._application
    inside.states.hold(STARTING)
    waits: list[float] = []
    for part, wait in ((inside._runner, "release"), (inside.side_effects, "stop"), (inside.global_copies, "stop")):
        monkeypatch.setattr(part, wait, waits.append)
    for beside in (inside.checkpoint_copies, inside._purging, inside.group_offsets):
        monkeypatch.setattr(beside, "finish", waits.append)
    monkeypatch.setattr(inside.side_effects, "drain", lambda ends, deadline: True)
    streams.close("1 second")
    assert len(waits) == 6
    assert max(waits) <= 1.0


@pytest.mark.parametrize("in_thread_of", ["a query", "the runner"])
def test_a_listener_that_closes_an_application_that_fails_waits_for_nothing_and_closes_it_at_the_end(
    in_thread_of: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    streams = application(tmp_path)
    inside = streams._application
    inside.states.hold(STARTING)
    closed: list[tuple[str, bool]] = []
    streams.set_state_listener(
        lambda new, old: closed.append((new.name, streams.close())) if "ERROR" in new.name else None
    )
    failing = threading.Thread(target=lambda: inside.supervisor.fail(StreamsError("no")))
    if in_thread_of == "the runner":
        inside._runner._stopping = threading.Event()
        inside._runner._thread = failing
    began = time.monotonic()
    failing.start()
    failing.join(20)
    assert not failing.is_alive(), "close() in the listener did not return"
    assert closed == [("PENDING_ERROR", False), ("ERROR", True)]
    assert time.monotonic() - began < 15  # close() itself would wait for 30 s
    assert streams.state is State.NOT_RUNNING
    assert "'app' is still stopping: close() it again when it is ERROR." in caplog.text
    bind("127.0.0.1", port_of(streams)).close()


def test_the_address_and_the_dashboard_stay_when_the_start_chooses_the_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    streams = KafkaStreams(builder.build(), "app", "127.0.0.1:1", application_server="127.0.0.1:0", state_dir=tmp_path)
    before, given = streams.query_server, lambda: ViewsPage("mine", ())
    assert before is not None
    before.rest.dashboard = given
    monkeypatch.setattr(streams._application, "_against_real_time", lambda: "")
    address, streams._application = streams.application_server, streams._application.in_chosen_mode()
    after = streams.query_server
    assert after is not None
    assert (after is before, streams.application_server, after.rest.dashboard) == (False, address, given)
    after.rest.start()
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port_of(streams))) == 0
    streams.close()


def test_a_state_listener_has_to_be_a_function(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match="A state listener is a function of the new state and the old one, not 'me'"):
        application(tmp_path).set_state_listener("me")  # type: ignore[arg-type]
