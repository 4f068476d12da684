"""The control of a feed: its buttons start, stop and disturb it, and its words say what was sent."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import ipywidgets as widgets
import pytest

from streamskit.common.durations import spell
from streamskit.common.errors import StreamsError
from streamskit.datasets import Feed, plays
from streamskit.testing import wait_until
from streamskit.widgets import FeedPanel
from tests.unit.course.test_feed import Topic


@pytest.fixture
def feed() -> Iterator[Feed]:
    made = Feed(Topic(), "plays", plays(), per_second=0)
    yield made
    made.stop()


@pytest.fixture
def panel(feed: Feed) -> FeedPanel:
    made = FeedPanel(feed, burst=30, late=4, by="2 hours")
    made.refresh()
    return made


def words(panel: FeedPanel) -> str:
    said: str = panel._header.value
    return said


def test_only_what_can_be_done_can_be_pressed(panel: FeedPanel, feed: Feed) -> None:
    pressable = [panel.start_button, panel.stop_button, *panel.mischief]
    assert [each.disabled for each in pressable] == [False, True, True, True, True]
    panel.start_button.click()
    wait_until(lambda: not panel.stop_button.disabled, "the start")
    assert [each.disabled for each in pressable] == [True, False, False, False, False]
    panel.stop_button.click()
    wait_until(lambda: not panel.start_button.disabled, "the stop")
    assert not feed.is_running
    assert "stopped" in words(panel)


def test_a_burst_late_and_broken_records_are_sent_at_a_press(panel: FeedPanel, feed: Feed) -> None:
    assert [each.description for each in panel.mischief] == ["Burst of 30", "4 late by 2 hours", "A broken one"]
    feed.start()
    for each in panel.mischief:
        each.click()
    wait_until(lambda: (len(feed.sent), feed.sent_late, feed.sent_broken) == (34, 4, 1), "all three")
    panel.refresh()
    for fact in ("0 a second asked for", "34 sent", "4 of them late", "1 broken"):
        assert fact in words(panel)


def test_the_slider_changes_the_pace_and_has_the_one_that_the_feed_begins_with(feed: Feed) -> None:
    feed.per_second = 7
    panel = FeedPanel(feed)
    assert panel.pace.value == 7
    panel.pace.value = 50.0
    assert feed.per_second == 50


@pytest.mark.parametrize(("per_second", "shown"), [(300, "300"), (7, "7"), (1_000, "1,000"), (0.5, "0.5")])
def test_the_pace_is_shown_as_a_person_writes_it(per_second: float, shown: str) -> None:
    pace = FeedPanel(Feed(Topic(), "plays", plays(), per_second=per_second)).pace
    assert (pace.label, pace.value) == (shown, per_second)
    assert not [text for text, _ in pace.options if text.endswith(".0")]


def test_trouble_of_the_feed_is_said(panel: FeedPanel, feed: Feed) -> None:
    feed.trouble = "The topic is gone."
    panel.refresh()
    assert "The topic is gone." in words(panel)


class Refusing(Feed):
    """A feed that cannot be stopped while its broker is away."""

    is_away = True

    def stop(self, at_least: int = 0) -> None:
        if self.is_away:
            raise StreamsError("The broker is away.")
        super().stop(at_least)


def test_what_a_button_could_not_do_is_said_in_red_until_one_can() -> None:
    feed = Refusing(Topic(), "plays", plays(), per_second=0)
    panel = FeedPanel(feed)
    feed.start()
    panel.stop_button.click()
    wait_until(lambda: "'Stop' failed: The broker is away." in unescape(words(panel)), "the sentence", 20)
    assert '<div class="sk-failed">' in words(panel)
    feed.is_away = False
    panel.stop_button.click()
    wait_until(lambda: "failed" not in words(panel), "the next press", 20)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"burst": -1}, StreamsError, "burst=-1"),
        ({"late": 2.5}, StreamsError, "late=2.5"),
        ({"by": "1 hours?"}, ValueError, "'1 hours?' is not a duration"),
    ],
)
def test_what_a_button_could_never_do_is_refused_when_the_panel_is_made(
    feed: Feed, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        FeedPanel(feed, **arguments)


def test_a_panel_of_something_else_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=re.escape("FeedPanel(Feed(broker, 'a-topic', plays()))")):
        FeedPanel(plays())  # type: ignore[arg-type]


def test_a_delay_in_milliseconds_is_written_as_a_duration(feed: Feed) -> None:
    assert FeedPanel(feed, by=60_000).mischief[1].description == f"10 late by {spell(60_000)}"


def test_a_saved_page_has_the_counts_and_no_buttons(panel: FeedPanel) -> None:
    saved = panel._repr_mimebundle_()["text/html"]
    assert "0 sent" in saved
    assert "Burst" not in saved
    assert isinstance(panel, widgets.VBox)
