"""The questions that a `Driver` asks its process."""

from multiprocessing import Pipe
from unittest.mock import Mock

import pytest

from streamskit import StreamsBuilder, StreamsError
from streamskit.faults import Driver, driver


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
