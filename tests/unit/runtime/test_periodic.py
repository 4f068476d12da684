"""Work beside the queries: it goes on after a failure, says so once, and closes what it has opened."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamskit import KafkaStreams, StreamsBuilder
from streamskit.runtime import group_offsets, topic_watch
from streamskit.runtime.group_offsets import GroupOffsets
from streamskit.runtime.periodic import Periodic
from streamskit.runtime.topic_watch import TopicWatch


class Work(Periodic):
    """Work whose turns go as a test says; the last one again and again."""

    def __init__(self, *turns: Callable[[], object]) -> None:
        super().__init__("sweeping", 0.005)
        self.turns, self.done, self.closed = list(turns), threading.Semaphore(0), threading.Event()

    def turn(self) -> None:
        try:
            (self.turns.pop(0) if len(self.turns) > 1 else self.turns[0])()
        finally:
            self.done.release()

    def close(self) -> None:
        self.closed.set()


def full() -> None:
    raise OSError(28, "No space left on device")


def well() -> None:
    pass


def test_a_turn_that_fails_is_told_of_once_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(well, full, full, full, well, full, well)
    work.start()
    for _ in range(8):
        assert work.done.acquire(timeout=5)
    assert work.lives
    work.stop()
    warned = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert warned == ["The sweeping failed, and tries again: OSError(28, 'No space left on device')"] * 2
    assert work.closed.wait(5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_whose_thread_is_ended_does_not_live_and_has_closed_what_it_opened() -> None:
    work = Work(lambda: sys.exit(1))
    work.start()
    assert work.closed.wait(5)
    work._thread.join(5)
    assert not work.lives


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("_purging", "the thread that deletes what nobody reads again"),
        ("checkpoint_copies", "the thread that copies its checkpoints"),
        ("group_offsets", "the thread that commits its offsets"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_watchdog_sees_that_such_a_thread_has_ended(
    part: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    application = KafkaStreams(builder.build(), "app", "127.0.0.1:1", state_dir=tmp_path)._application
    periodic = getattr(application, part)
    assert application._parts()[name]
    monkeypatch.setattr(periodic, "turn", lambda: sys.exit(1))
    monkeypatch.setattr(periodic, "_seconds", 0.0)
    periodic.start()
    periodic._thread.join(5)
    assert not application._parts()[name]


class Client:
    """A client of a broker that notes when it was closed."""

    closed: list[str]

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self._name = "a consumer" if "group.id" in settings else "a producer"

    def commit(self, **offsets: Any) -> None:
        pass

    def init_transactions(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        self.closed.append(self._name)


def test_the_clients_that_commit_offsets_are_closed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    Client.closed = []
    for name in ("Consumer", "Producer"):
        monkeypatch.setattr(group_offsets, name, Client)
    monkeypatch.setattr(group_offsets, "AdminClient", lambda settings, logger: object())
    offsets = GroupOffsets("nowhere:1", "app", lambda: {"in": {0: 7}})
    monkeypatch.setattr(offsets, "_seconds", 0.005)
    assert offsets._admin is offsets._admin
    assert offsets._producer is offsets._producer
    offsets.start()
    deadline = time.monotonic() + 5
    while not offsets._committed and time.monotonic() < deadline:
        time.sleep(0.005)
    offsets.finish(5)
    assert sorted(Client.closed) == ["a consumer", "a producer"]
    assert not {"_member_of_none", "_producer", "_admin"} & vars(offsets).keys()


def test_the_client_that_looks_at_topics_is_let_go_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_watch, "AdminClient", Client)
    watch = TopicWatch("nowhere:1", lambda found: None)
    monkeypatch.setattr(watch, "_seconds", 0.005)
    monkeypatch.setattr(watch, "turn", lambda: watch._admin)
    watch.watch(["in"])
    watch.finish(5)
    assert "_admin" not in vars(watch)
