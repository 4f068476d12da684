"""`Fault`: undone by hand, at the end of a block, or by itself."""

import logging
import re

import pytest

from streamskit.common.errors import StreamsError
from streamskit.environment.processes import wait_until
from streamskit.faults import Fault


class Thing:
    """Something that can be mended, sometimes only at the second try."""

    def __init__(self, refusals: int = 0) -> None:
        self.mended, self._refusals = 0, refusals

    def mend(self) -> None:
        if self._refusals:
            self._refusals -= 1
            raise StreamsError("Close it first.")
        self.mended += 1

    def fault(self, seconds: float | None = None) -> Fault:
        return Fault("It was broken.", "how it lies there", "undo() mends it", self.mend, seconds)


def test_a_fault_says_what_was_done_what_to_watch_and_how_to_undo_it() -> None:
    fault = Thing().fault()
    assert repr(fault).splitlines() == [
        "It was broken.",
        "  now:   lasts",
        "  watch: how it lies there",
        "  undo:  undo() mends it",
    ]
    fault.undo()
    assert "now:   undone" in repr(fault)


def test_a_fault_is_undone_once_however_often_it_is_asked_for() -> None:
    thing = Thing()
    fault = thing.fault()
    assert fault.is_active
    fault.undo()
    fault.undo()
    assert (thing.mended, fault.is_active) == (1, False)


def test_a_with_block_undoes_it_also_when_it_fails() -> None:
    thing = Thing()
    with pytest.raises(ZeroDivisionError), thing.fault():
        1 / 0  # noqa: B018
    assert thing.mended == 1


def test_it_is_undone_by_itself_after_its_time_and_tells_how_long_that_is() -> None:
    thing = Thing()
    fault = thing.fault(0.2)
    assert re.fullmatch(r"lasts \d+ s more", fault.state)
    wait_until(lambda: fault.state == "undone", "the fault's end", 10)
    assert thing.mended == 1


def test_one_that_cannot_be_undone_yet_says_why_and_can_be_asked_again() -> None:
    thing = Thing(refusals=1)
    fault = thing.fault()
    with pytest.raises(StreamsError, match="Close it first"):
        fault.undo()
    assert (fault.is_active, fault.state) == (True, "Close it first.")
    fault.undo()
    assert (fault.is_active, fault.state, thing.mended) == (False, "undone", 1)


def test_one_that_cannot_be_undone_by_itself_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="streamskit"):
        fault = Thing(refusals=1).fault(0.05)
        wait_until(lambda: fault.trouble, "the fault's trouble", 10)
    assert "could not be undone: Close it first. It was this: It was broken." in caplog.text
