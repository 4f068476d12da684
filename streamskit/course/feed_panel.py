"""`FeedPanel`: the control of a feed in a notebook: start, stop, pace, and a button for each thing that goes wrong."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ipywidgets as widgets

from streamskit.common.durations import Duration, spell, to_milliseconds
from streamskit.course.datasets.arguments import check_argument
from streamskit.course.datasets.feed import Feed
from streamskit.views.controls import button, field, in_background
from streamskit.views.live_view import LiveView
from streamskit.views.page import Page, Snapshot, counted_until, rate

STEPS = (0, 1, 5, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
"""The paces to choose from, in records a second."""


@dataclass(frozen=True, kw_only=True)
class FeedSnapshot(Snapshot):
    """A feed at one moment: its counts, and how many it has sent over the last seconds."""

    is_running: bool
    per_second: float
    sent: int
    late: int
    broken: int
    history: Sequence[tuple[float, int]]


def facts(snapshot: FeedSnapshot, is_saved: bool) -> list[str]:
    """Say how the feed is: its pace, and what it has sent."""
    measured = rate(snapshot.history)
    pace = "stopped" if not snapshot.is_running else f"{snapshot.per_second:g} a second asked for"
    now = [f"{measured:.0f} a second sent"] if snapshot.is_running and measured is not None and not is_saved else []
    counts = [f"{snapshot.sent:,} sent", f"{snapshot.late:,} of them late", f"{snapshot.broken:,} broken"]
    return [pace, *now, *counts]


class FeedPanel(LiveView):
    """Buttons that start and stop a feed, change its pace, and send bursts, late and broken records.

    Args:
        feed: the feed.
        burst: how many records a burst has.
        late: how many late records a press of the button sends.
        by: how late they are, a duration.
        refresh: how often to look, a duration of at least 50 ms.

    Raises:
        TypeError: `feed` is no feed.
        StreamsError: `burst` or `late` is no whole number from 0 on.
        ValueError: `by` or `refresh` is not such a duration.

    >>> FeedPanel(Feed(broker, "music-plays", plays()))  # doctest: +SKIP
    """

    PAGE = Page("feed", "The feed", facts, {}, saved_parts={})

    def __init__(
        self, feed: Feed, burst: int = 200, late: int = 10, by: Duration = "1 hour", refresh: Duration = "500 ms"
    ) -> None:
        if not isinstance(feed, Feed):
            raise TypeError(
                f"FeedPanel controls a feed, and this is a {type(feed).__name__}: write "
                "FeedPanel(Feed(broker, 'a-topic', plays()))."
            )
        check_argument("FeedPanel", "burst", burst)
        check_argument("FeedPanel", "late", late)
        delay = to_milliseconds(by, "by")
        how_late = by if isinstance(by, str) else spell(delay)
        self.feed = feed
        self.start_button = self._button("Start", "play", feed.start)
        self.stop_button = self._button("Stop", "stop", feed.stop)
        self.pace = field(
            widgets.SelectionSlider,
            "Per second",
            70,
            320,
            self._set_pace,
            options=[(f"{step:,.10g}", step) for step in sorted({*map(float, STEPS), feed.per_second})],
            value=feed.per_second,
        )
        self.mischief = [
            self._button(f"Burst of {burst:,}", "forward", lambda: feed.burst(burst)),
            self._button(f"{late:,} late by {how_late}", "clock-o", lambda: feed.late(late, by)),
            self._button("A broken one", "bolt", lambda: feed.poison(1)),
        ]
        super().__init__(feed, refresh, [self.start_button, self.stop_button, self.pace, *self.mischief])

    def take(self, previous: FeedSnapshot | None) -> FeedSnapshot:
        """Look at the feed."""
        feed, now = self.feed, time.time()
        sent = len(feed.sent)
        return FeedSnapshot(
            name=f"Feed of '{feed.topic}'",
            taken_at=now,
            trouble=feed.trouble,
            is_running=feed.is_running,
            per_second=feed.per_second,
            sent=sent,
            late=feed.sent_late,
            broken=feed.sent_broken,
            history=counted_until(previous.history if previous else [], now, sent),
        )

    def redraw(self) -> None:
        """Show the current snapshot; buttons for what is not possible now are disabled."""
        running = self._snapshot.is_running
        self.start_button.disabled, self.stop_button.disabled = running, not running
        for each in self.mischief:
            each.disabled = not running
        super().redraw()

    def _button(self, words: str, icon: str, act: Callable[[], object]) -> widgets.Button:
        def press() -> None:
            def run() -> None:
                try:
                    self._trouble = ""
                    act()
                except Exception as failure:  # nobody would see an error in a thread
                    self._trouble = f"'{words}' failed: {failure}"
                self.refresh()

            in_background("feed", run)  # a stop waits for records still being sent

        return button(press, "150px", description=words, icon=icon)

    def _set_pace(self) -> None:
        self.feed.per_second = self.pace.value
        self.refresh()
