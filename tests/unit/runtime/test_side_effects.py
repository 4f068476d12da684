"""The calls of `foreach`, `peek` and `print` functions, and the note of how far they have come."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from streamskit import Serdes
from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import TopicRecord
from streamskit.runtime.side_effects import FILE, SideEffects
from streamskit.topology.nodes import SideEffect

TOPIC = "calls"
WHERE = TopicPartition(TOPIC, 0)


class UnderWay:
    """Calls of a function of which the second lasts until the test lets it end."""

    def __init__(self, folder: Path) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        text = Serdes.string()
        node = SideEffect("KSTREAM-FOREACH-0000000001", ("source",), text, text, "a test", action=self.call)
        anything: Any = None
        self.calls = SideEffects("127.0.0.1:1", {TOPIC: node}, folder, anything, anything)
        self.calls._started = True  # what start() does without a broker
        self.file = folder / FILE
        records = [TopicRecord(TOPIC, 0, offset, 0, b"k", b"%d" % offset, []) for offset in range(3)]
        self.thread = threading.Thread(target=self.calls._take, args=(WHERE, records, [0, 1, 2], 3), daemon=True)

    def call(self, key: str, value: str) -> None:
        if value == "1":
            self.has_begun.set()
            assert self.may_end.wait(10), "The test did not let the call end."

    def begin(self) -> None:
        self.thread.start()
        assert self.has_begun.wait(10), "The second record's function was not called."

    def end(self) -> None:
        self.may_end.set()
        self.thread.join(10)
        assert not self.thread.is_alive(), "The call has not ended."

    def noted(self) -> int:
        offset: int = json.loads(self.file.read_text())[TOPIC]["0"]
        return offset


@pytest.fixture
def under_way(tmp_path: Path) -> UnderWay:
    return UnderWay(tmp_path)


def test_a_call_that_outlasts_the_stop_is_noted_when_it_ends(under_way: UnderWay) -> None:
    under_way.begin()
    under_way.calls.stop(0.01)
    assert under_way.noted() == 1
    under_way.end()
    assert under_way.noted() == 2  # and the third record was not passed on


def test_a_call_that_ends_after_the_next_start_went_on_leaves_its_note_alone(under_way: UnderWay) -> None:
    under_way.begin()
    under_way.calls.stop(0.01)
    under_way.file.write_text(json.dumps({TOPIC: {"0": 3}}))
    under_way.end()
    assert under_way.noted() == 3


def test_a_function_that_waits_until_all_is_processed_would_wait_for_itself(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_way.calls._reader, "_thread", threading.current_thread())
    with pytest.raises(StreamsError, match=r"waits for itself: await_processed\(\) returns when these functions"):
        under_way.calls.wait_for({WHERE: 3}, 0)
