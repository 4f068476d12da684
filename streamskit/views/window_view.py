"""`WindowView`: windows in event time, live in a notebook.

It shows which are open, which records fell into them, and which came too late.
"""

from collections.abc import Iterator, Sequence

from streamskit.api.windows import AnyWindows, SessionWindows, SlidingWindows, UnlimitedWindows, Windowed
from streamskit.common.durations import Duration, spell
from streamskit.common.svg import group, path
from streamskit.runtime import KafkaStreams
from streamskit.testing import TopologyTestDriver
from streamskit.views import streams_source
from streamskit.views.charts import COLOURS, counted, empty
from streamskit.views.controls import search_field
from streamskit.views.event_time_axis import AMBER, TOP, Axis, cross, dot, lane, mark, stacked
from streamskit.views.event_time_view import EventTimeView, begun, none_came, story, tooltip, where
from streamskit.views.html import time_beside, time_of_day
from streamskit.views.page import Page
from streamskit.views.record_source import TimeOf, application_id
from streamskit.views.replay import (
    SeenRecords,
    WindowSnapshot,
    closed_until,
    state_of,
    window_snapshot,
    windows_after,
)
from streamskit.views.upstream import origins, windowed_nodes

LANES, ROWS = 6, 10
"""How many keys are drawn at most, and how many rows of windows for each."""

ROW, RECORDS, GAP = 15, 20, 8
"""Heights in pixels: of a row of windows, of the line of records beneath, of the gap to the next key."""

LEGEND = (
    "Windows: solid is open, dashed has ended and still takes late records (grace), grey is closed. "
    "Records: ● in its windows, ◆ too late for some of them, ✕ dropped; the last one has a ring."
)

Lanes = dict[str, tuple[dict[Windowed, int], int]]
"""For each key the rows of its windows, and the height of its lane in pixels."""


def facts(snapshot: WindowSnapshot, is_saved: bool) -> list[str]:
    """Say which windows these are, and of which records."""
    return [in_words(snapshot.windows), *where(snapshot.seen)]


def in_words(windows: AnyWindows) -> str:
    """Return what a user calls these windows."""
    grace = f"grace {spell(windows.grace)}" if windows.grace else "no grace"
    if isinstance(windows, SessionWindows):
        return f"sessions with a gap of {spell(windows.gap)}, {grace}"
    if isinstance(windows, SlidingWindows):
        return f"sliding windows of {spell(windows.time_difference)}, {grace}"
    if isinstance(windows, UnlimitedWindows):
        return "one window without an end"
    if windows.advance == windows.size:
        return f"tumbling windows of {spell(windows.size)}, {grace}"
    return f"hopping windows of {spell(windows.size)} every {spell(windows.advance)}, {grace}"


def chart(snapshot: WindowSnapshot) -> str:
    """Draw records and windows, a lane for each key, and how far stream time has come."""
    keys, title = snapshot.keys[:LANES], f"Windows of {snapshot.name} in event time (UTC)"
    if not snapshot.steps or not keys:
        return empty(title, _nothing(snapshot))
    every = sorted({window for step in snapshot.steps for window in step.windows}, key=lambda each: each[1:])
    times = [step.arrival.timestamp for step in snapshot.steps if not step.arrival.refused]
    axis = Axis.of([*times, *(time for window in every for time in (window.start, window.end))])
    lanes = _lanes(keys, every)
    bottom = TOP + sum(height for _, height in lanes.values())
    drawn: list[str] = []
    now = snapshot.done[-1].stream_time if snapshot.done else -1
    if now >= 0:
        drawn += [*axis.closed(closed_until(snapshot.windows, now), bottom)]
        drawn += [*_windows(snapshot, axis, lanes, now), *axis.stream_time(now, bottom)]
    y = float(TOP)
    for key, (_, height) in lanes.items():
        y += height
        drawn += [lane(y - GAP - 10, key), *_records(snapshot, axis, key, y - GAP - 10)]
    return axis.picture(title, bottom, drawn)


def tell(snapshot: WindowSnapshot) -> str:
    """Return in words what the last record did, and what was dropped and why."""
    more = len(snapshot.keys) - LANES
    hidden = f" {more} more keys are not drawn: search for one." if more > 0 else ""
    return story(snapshot, last_step(snapshot) if snapshot.done else "", LEGEND + hidden)


def last_step(snapshot: WindowSnapshot) -> str:
    """Return a sentence on the last record that came."""
    step, day = snapshot.done[-1], begun(snapshot)
    arrival, now = step.arrival, time_beside(step.stream_time, day)
    if step.stream_time < 0:
        moved = "stream time has not begun"
    elif step.stream_time_before < 0:
        moved = f"stream time begins at {now}"
    elif step.stream_time_before == step.stream_time:
        moved = f"stream time stays at {now}"
    else:
        moved = f"stream time moves from {time_beside(step.stream_time_before, day)} to {now}"
    fate = f"It is {step.why}." if step.why.startswith("too late") else f"It is left out: {step.why}."
    held = sum(count is not None for count in step.windows.values())
    did = fate if step.why else f"It changes {counted(held, 'window')}." if held else ""
    which = f"Record {snapshot.at} of {len(snapshot.steps)}"
    return f"{which}: {arrival.key} at {time_beside(arrival.timestamp, day)}; {moved}. {did}"


def _lanes(keys: Sequence[str], every: Sequence[Windowed]) -> Lanes:
    """Return for each key the rows of its windows, as many as are drawn, and the height of its lane."""
    lanes = {}
    for key in keys:
        own = [window for window in every if window.key == key]
        kept = {window: row for window, row in zip(own, stacked(own), strict=True) if row < ROWS}
        lanes[key] = (kept, (1 + max(kept.values(), default=-1)) * ROW + RECORDS + GAP)
    return lanes


def _windows(snapshot: WindowSnapshot, axis: Axis, lanes: Lanes, now: int) -> Iterator[str]:
    y, present = float(TOP), windows_after(snapshot.done)
    for placed, height in lanes.values():
        y += height
        for window, row in placed.items():
            if window in present:
                top = y - GAP - RECORDS - (row + 1) * ROW
                yield _bar(axis, window, top, present[window], state_of(window, snapshot.windows, now))


def _bar(axis: Axis, window: Windowed, y: float, count: int, state: str) -> str:
    times = f"{time_of_day(window.start)} – {time_of_day(window.end)}"
    words = f"{window.key}, {times}: {counted(count, 'record')}, {state}"
    return group(words, axis.window(window, y, 13, state, f"{count}"))


def _records(snapshot: WindowSnapshot, axis: Axis, key: str, y: float) -> Iterator[str]:
    for number, step in enumerate(snapshot.done, 1):
        if step.arrival.key == key and not step.arrival.refused:
            late = path("M0-6L6 0 0 6-6 0z", fill=AMBER)
            shape = cross() if step.is_dropped else late if step.missed else dot()
            ring = COLOURS[1] if number == snapshot.at else ""
            yield mark(axis.x(step.arrival.timestamp), y, tooltip(number, step), shape, ring)


def _nothing(snapshot: WindowSnapshot) -> str:
    if snapshot.steps and snapshot.search:
        return f"No key that is searched for ({snapshot.search}) has come."
    return none_came(snapshot, ", ")


# ---- the view --------------------------------------------------------------------------------------------------------

NATIVE = (
    "Spark's own operators keep these windows. Their stream time is that of the whole query and moves once in a "
    "micro-batch, so that a window may close later than shown here, never earlier."
)
"""What differs when an aggregation runs without Python."""


class WindowView(EventTimeView):
    """A live view of how windows open and close: records in event time, stream time, and what came too late.

    It shows the last records of the topics that feed the windows, and runs the windows' own algorithm again on them,
    one task at a time. The slider goes back in the order in which they came. Of a test driver it shows what is piped in
    after the view was made.

    Args:
        source: a running application, or a test driver.
        store: the name of a store with windows: hopping, tumbling, sliding or sessions.
        refresh: how often to look, a duration of at least 50 ms.
        records: how many of the last records to show, of each partition, 1 to 2000.
        time: where the topology takes times from values by a Column function, the same in Python: takes a value and
            returns milliseconds since 1970.

    Raises:
        TypeError: `source` is neither of them.
        ValueError: there is no such store, or another argument is out of range.

    >>> WindowView(streams, "trade-aggregates")  # doctest: +SKIP
    >>> WindowView(driver, "counts", records=50)  # doctest: +SKIP

    Mirrors the metrics `dropped-records-total` and `stream-time`, which give only numbers.
    """

    PAGE = Page("windows", "The records", facts, {"chart": chart, "story": tell})

    def __init__(
        self, source: KafkaStreams | TopologyTestDriver, store: str, refresh: Duration = "500 ms", records: int = 200,
        time: TimeOf | None = None,
    ) -> None:  # fmt: skip
        named = application_id(source)
        nodes, self._windows = windowed_nodes(source.topology, store)
        kept = nodes[0].store
        self._store = store
        self._retention = kept.retention if kept and kept.retention is not None else self._windows.retention
        self._search = search_field(self.refresh)
        feeding = [origin for node in nodes for origin in origins(source.topology, node, named)]
        is_native = isinstance(source, KafkaStreams) and any(streams_source.is_native(source, node) for node in nodes)
        caveat = NATIVE if is_native else ""
        super().__init__(f"'{store}'", source, nodes, feeding, refresh, records, time, [self._search], caveat)

    def replay(self, seen: SeenRecords, previous: WindowSnapshot | None) -> WindowSnapshot:
        """Return a snapshot of the windows."""
        return window_snapshot(self._store, self._windows, self._retention, seen, self._search.value, previous)
