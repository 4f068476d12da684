"""The questions that a `Driver` asks its process."""

import pickle
import threading
from multiprocessing import Pipe
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from streamskit import StreamsBuilder, StreamsError, TopologyError
from streamskit.faults import Driver, driver, driver_process


def test_a_process_that_does_not_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ANSWER_SECONDS", 0.05)
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    asking = Driver(builder.build(), "shop", "127.0.0.1:9")
    asking._line, theirs = Pipe()
    asking._process = Mock(poll=lambda: None)
    with pytest.raises(StreamsError, match=r"'shop' has not answered within 0\.05 s, .* kill\(\) and start\(\)"):
        asking.rows("counts")
    with pytest.raises(StreamsError, match=r"has not answered within 0\.15 s"):
        asking.await_processed(100)
    assert [theirs.recv()[1:] for _ in range(2)] == [("rows", "counts"), ("await_processed", 100)]


def test_a_process_that_does_not_start_in_time_is_ended_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "START_SECONDS", 0.05)  # less than Python takes to start
    starting = Driver(lambda: StreamsBuilder().build(), "shop", "127.0.0.1:9")
    with pytest.raises(
        StreamsError, match=r"'shop' has not started within 0\.05 s, and was stopped: .* output: nothing"
    ):
        starting.start()
    assert (starting.is_running, starting.state) == (False, "KILLED")


def test_a_builder_whose_build_was_forgotten_is_no_program() -> None:
    with pytest.raises(TopologyError, match=r"is a StreamsBuilder: give builder\.build\(\)"):
        Driver(StreamsBuilder(), "shop", "127.0.0.1:9")  # type: ignore[arg-type]


def test_a_program_that_returns_no_topology_is_told_so() -> None:
    ours, theirs = Pipe()
    ours.send_bytes(pickle.dumps((StreamsBuilder, "shop", "127.0.0.1:9", {})))
    assert driver_process.main(theirs) == 1
    number, is_fine, said = ours.recv()
    assert (number, is_fine) == (0, False)
    assert "is a StreamsBuilder: give builder.build()" in said


def test_a_row_that_cannot_be_sent_is_an_answer_at_once_and_not_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Pipe()
    lock = SimpleNamespace(all=lambda: [("a", threading.Lock())])  # no process can give a lock to another
    streams = SimpleNamespace(
        set_state_listener=lambda listener: None, start=lambda: None, close=lambda: None, store=lambda name: lock
    )
    monkeypatch.setattr(driver_process, "KafkaStreams", lambda *what, **how: streams)
    ours.send_bytes(pickle.dumps(("a topology", "shop", "127.0.0.1:9", {})))
    process = threading.Thread(target=driver_process.main, args=(theirs,))
    process.start()
    try:
        assert ours.recv() == (0, True, None)
        ours.send((1, "rows", "counts"))
        assert ours.poll(10), "no answer within 10 s"
        number, is_fine, said = ours.recv()
        assert (number, is_fine) == (1, False)
        assert said.startswith("The answer cannot be sent to this process: ")
    finally:
        ours.send(None)
        process.join(10)
