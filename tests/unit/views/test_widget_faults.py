"""The panel of faults: its buttons do and undo, its words say how it stands, and its saved page is plain."""

import re
import threading
from pathlib import Path

import pytest

from streamskit.broker import EmbeddedBroker
from streamskit.common.errors import BrokerError
from streamskit.environment.processes import wait_until
from streamskit.faults import Fault
from streamskit.views.fault_panel import FaultRow
from streamskit.widgets import FaultPanel


class Thing:
    """Something that can be broken and mended; breaking takes until `may_break` is set."""

    def __init__(self) -> None:
        self.may_break, self.is_whole, self.refuses, self.mended = threading.Event(), True, False, 0
        self.broken = 0
        self.may_break.set()

    def fault(self) -> Fault:
        if self.refuses:
            raise BrokerError("It is made of <steel>.")
        self.may_break.wait(10)
        self.is_whole, self.broken = False, self.broken + 1
        return Fault("It was broken.", "how it <lies>", "undo() mends it", self.mend)

    def mend(self) -> None:
        self.is_whole, self.mended = True, self.mended + 1


@pytest.fixture
def thing() -> Thing:
    return Thing()


@pytest.fixture
def panel(thing: Thing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultPanel:
    """A panel whose first button breaks a thing in place of a broker."""
    monkeypatch.setattr("streamskit.faults.kill_broker", lambda seconds, broker: thing.fault())
    made = FaultPanel(broker=EmbeddedBroker(tmp_path / "broker"), seconds=5)
    made.refresh()
    return made


def first(panel: FaultPanel) -> FaultRow:
    return panel._rows[0]


def test_there_is_a_button_for_each_fault_that_is_possible(panel: FaultPanel) -> None:
    assert [row.do.description for row in panel._rows] == ["Kill the broker for 5 s", "Pause the broker for 5 s"]
    assert [(row.do.disabled, row.undo.disabled) for row in panel._rows] == [(False, True)] * 2
    with pytest.raises(ValueError, match="nothing to break"):
        FaultPanel()


def test_the_time_of_a_fault_is_seconds_or_a_text_or_none(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "broker")
    made = [FaultPanel(broker=broker, seconds=seconds)._rows[0].words for seconds in ("1 minute", 0.5, None)]
    assert made == ["Kill the broker for 60 s", "Kill the broker for 0.5 s", "Kill the broker"]
    with pytest.raises(ValueError, match="seconds 'soon' is not a duration"):
        FaultPanel(broker=broker, seconds="soon")


def test_a_button_breaks_and_another_one_mends(panel: FaultPanel, thing: Thing) -> None:
    row = first(panel)
    row.do.click()
    wait_until(lambda: not row.undo.disabled, "the button that undoes the fault", 10)
    assert not thing.is_whole
    assert "✕ lasts" in row.said.value
    assert row.do.disabled
    assert "1 of 2 faults last now" in panel._header.value
    assert "It was broken." in panel._parts["report"].value
    assert "how it &lt;lies&gt;" in panel._parts["report"].value
    row.undo.click()
    wait_until(lambda: row.undo.disabled and not row.do.disabled, "the fault's end", 10)
    assert "● undone" in row.said.value
    assert thing.mended == 1


def test_a_button_returns_at_once_and_cannot_be_pressed_twice(panel: FaultPanel, thing: Thing) -> None:
    thing.may_break.clear()
    row = first(panel)
    row.do.click()
    assert "is being done" in row.said.value
    assert row.do.disabled
    row.do.click()  # as a click that was under way when the button was switched off
    assert thing.is_whole
    thing.may_break.set()
    wait_until(lambda: not row.undo.disabled, "the button that undoes the fault", 10)
    assert thing.broken == 1


def test_a_fault_that_is_refused_says_why(panel: FaultPanel, thing: Thing) -> None:
    thing.refuses = True
    first(panel).do.click()
    wait_until(lambda: "▲ It is made of &lt;steel&gt;." in first(panel).said.value, "the fault's error", 10)
    assert not first(panel).do.disabled


def test_a_saved_page_tells_the_same_without_buttons(panel: FaultPanel, thing: Thing) -> None:
    first(panel).do.click()
    wait_until(lambda: not first(panel).undo.disabled, "the button that undoes the fault", 10)
    html = FaultPanel.PAGE.saved(panel.take(None))
    assert not re.search(r"<(script|input|button|svg)", html)
    for words in ("Kill the broker for 5 s", "lasts", "not injected", "It was broken.", "1 of 2 faults last now"):
        assert words in html
