"""`JoinView`: the records of two streams in event time, live in a notebook: windows around each, and who met whom."""

from collections import Counter
from collections.abc import Iterator, Mapping

from streamskit.common.durations import Duration, spell
from streamskit.common.svg import path
from streamskit.runtime import KafkaStreams
from streamskit.testing import TopologyTestDriver
from streamskit.topology.nodes.joins import JOIN_LABELS
from streamskit.views.charts import COLOURS, MARKS, counted, empty
from streamskit.views.event_time_axis import TOP, Axis, Look, cross, lane, mark
from streamskit.views.event_time_view import EventTimeView, begun, none_came, story, tooltip, where
from streamskit.views.html import time_beside
from streamskit.views.page import Page
from streamskit.views.record_source import TimeOf, application_id
from streamskit.views.replay import FATES, JoinSnapshot, SeenRecords, join_snapshot
from streamskit.views.upstream import join_sides, origins

WINDOWS = 12
"""For how many of the last records windows are drawn."""

LEFT_LANE, RIGHT_LANE, PITCH = TOP + 78, TOP + 178, 5
"""Where the two lanes are, and how far apart the windows' lines, in pixels."""

BOTTOM = RIGHT_LANE + 78

LEGEND = (
    "A line joins two records that met. Records: filled have met another, ○ may still meet one, grey are unmatched and "
    "their time is over, ⊘ went out alone, ✕ dropped; the last one has a ring. The bracket at a record is the time in "
    "which a record of the other stream meets it. Records with the same mark have the same key."
)


def facts(snapshot: JoinSnapshot, is_saved: bool) -> list[str]:
    """Say which join this is, and of which records."""
    return [in_words(snapshot), *where(snapshot.seen)]


def in_words(snapshot: JoinSnapshot) -> str:
    """Return the join as a sentence: its kind, and how far apart two records may be."""
    windows = snapshot.windows
    if windows.before_ms == windows.after_ms:
        reach = f"at most {spell(windows.before_ms)} apart"
    else:
        reach = f"the right one from {spell(windows.before_ms)} before to {spell(windows.after_ms)} after the left one"
    grace = f"grace {spell(windows.grace)}" if windows.grace else "no grace"
    return f"{JOIN_LABELS[snapshot.outer]} of {' and '.join(snapshot.names)}, {reach}, {grace}"


def chart(snapshot: JoinSnapshot) -> str:
    """Draw both streams, windows, and the pairs that met."""
    title = f"{JOIN_LABELS[snapshot.outer].capitalize()} in event time (UTC)"
    times = [step.arrival.timestamp for step in snapshot.steps if not step.arrival.refused]
    if not times:
        return empty(title, none_came(snapshot, " or "))
    reach = max(snapshot.windows.before_ms, snapshot.windows.after_ms)
    axis = Axis.of([*times, *(max(0, time - reach) for time in times), *(time + reach for time in times)])
    drawn = [lane(y, name) for name, y in zip(snapshot.names, (LEFT_LANE, RIGHT_LANE), strict=True)]
    if snapshot.done:
        drawn += [*_windows(snapshot, axis), *_pairs(snapshot, axis)]
        drawn += [*axis.stream_time(snapshot.done[-1].stream_time, BOTTOM), *_records(snapshot, axis)]
    return axis.picture(title, BOTTOM, drawn)


def tell(snapshot: JoinSnapshot) -> str:
    """Return in words what the last record did, how many met, and what was dropped and why."""
    counts = Counter(snapshot.fates().values())
    met = sum(None not in pair for pair in snapshot.pairs)
    total = ", ".join(f"{counts[fate]} {fate}" for fate in FATES if counts[fate]) or "none yet"
    sentence = last_step(snapshot) if snapshot.done else ""
    return story(snapshot, sentence, f"{counted(met, 'pair')} met; records: {total}.", LEGEND)


def last_step(snapshot: JoinSnapshot) -> str:
    """Return a sentence on the last record that came."""
    step, day = snapshot.done[-1], begun(snapshot)
    arrival, sides = step.arrival, " and ".join(snapshot.names[side] for side in step.arrival.sides)
    met = sum(None not in pair for pair in step.pairs)
    alone = len(step.pairs) - met
    did = f"It meets {counted(met, 'record')}." if met else "It meets none."
    did += f" {counted(alone, 'record')} without a match went out alone." if alone else ""
    when, now = time_beside(arrival.timestamp, day), time_beside(step.stream_time, day)
    which = f"Record {snapshot.at} of {len(snapshot.steps)}: {arrival.key} of {sides} at {when}"
    return f"{which}; stream time is {now}. " + (f"It is dropped: {step.why}." if step.why else did)


def _windows(snapshot: JoinSnapshot, axis: Axis) -> Iterator[str]:
    """Draw the windows of the last records: the left side's above, the right side's below."""
    for back, step in enumerate(reversed(snapshot.done[-WINDOWS:])):
        for side in step.arrival.reached:
            before, after = snapshot.windows.before_ms, snapshot.windows.after_ms
            before, after = (after, before) if side else (before, after)
            away = 14 + back * PITCH
            y = RIGHT_LANE + away if side else LEFT_LANE - away
            time = step.arrival.timestamp
            start, middle, end = axis.x(time - before), axis.x(time), axis.x(time + after)
            bracket = ("M", start, y - 3, "v6m0-3H", end, "m0-3v6M", middle, y - 3, "v6")
            width, opacity = (2.4, "1") if back == 0 else (1, "0.5")
            yield path(*bracket, stroke=COLOURS[0], stroke_width=width, fill="none", opacity=opacity)


def _pairs(snapshot: JoinSnapshot, axis: Axis) -> Iterator[str]:
    newest = set(snapshot.done[-1].pairs)
    for left, right in snapshot.pairs:
        if left is not None and right is not None:
            one, two = (axis.x(snapshot.steps[place].arrival.timestamp) for place in (left, right))
            is_new = (left, right) in newest
            look = {"stroke": COLOURS[1], "stroke_width": "2.4"} if is_new else {"stroke": "currentColor"}
            yield path("M", one, LEFT_LANE, "L", two, RIGHT_LANE, **look, opacity=".75")


def _records(snapshot: JoinSnapshot, axis: Axis) -> Iterator[str]:
    keys = list(dict.fromkeys(step.arrival.key for step in snapshot.steps))
    fates = snapshot.fates()
    for place, step in enumerate(snapshot.done):
        number = keys.index(step.arrival.key)
        shape, colour = MARKS[number % len(MARKS)], COLOURS[number % len(COLOURS)]
        for side in step.arrival.reached:
            fate, y = fates[side, place], RIGHT_LANE if side else LEFT_LANE
            ring = COLOURS[1] if place == snapshot.at - 1 else ""
            words = f"{tooltip(place + 1, step)}; {fate}"
            yield mark(axis.x(step.arrival.timestamp), y, words, _shape(shape, colour, fate), ring)


def _shape(shape: str, colour: str, fate: str) -> str:
    if fate == "dropped":
        return cross()
    looks: Mapping[str, Look] = {
        "joined": {"fill": colour},
        "waiting": {"fill": "none", "stroke": colour, "stroke_width": 2},
        "unmatched": {"fill": "currentColor", "opacity": ".4"},
        "alone": {"fill": "none", "stroke": "currentColor", "stroke_width": 1.6},
    }
    slash = path("M-6 6L6-6", stroke="currentColor", stroke_width=1.6) if fate == "alone" else ""
    return path(shape, **looks[fate]) + slash


# ---- the view --------------------------------------------------------------------------------------------------------


class JoinView(EventTimeView):
    """A live view of a join of two streams: two lanes of records in event time, the window around each, who met whom.

    It shows the last records of the topics on both sides, and runs the join's own algorithm again on them, one task at
    a time. The slider goes back in the order in which they came; between two topics of a running application that is
    the order of their times. Of a test driver it shows what is piped in after the view was made.

    Args:
        source: a running application, or a test driver.
        join: the name of the join, or of one of its nodes; not needed where the topology has only one.
        refresh: how often to look, a duration of at least 50 ms.
        records: how many of the last records to show, of each partition, 1 to 2000.
        time: where the topology takes times from values by a Column function, the same in Python: takes a value and
            returns milliseconds since 1970.

    Raises:
        TypeError: `source` is neither of them.
        ValueError: there is no such join, or another argument is out of range.

    >>> JoinView(streams)  # doctest: +SKIP
    >>> JoinView(driver, records=40)  # doctest: +SKIP

    Mirrors what `KStream#join` with `JoinWindows` does, which no metric of Kafka Streams shows.
    """

    PAGE = Page("join", "The records", facts, {"chart": chart, "story": tell})

    def __init__(
        self, source: KafkaStreams | TopologyTestDriver, join: str | None = None, refresh: Duration = "500 ms",
        records: int = 40, time: TimeOf | None = None,
    ) -> None:  # fmt: skip
        named = application_id(source)
        left, right = join_sides(source.topology, join)
        if left.windows is None:
            raise ValueError(f"{left.name} has no windows: JoinView shows joins of two streams.")
        feeding = [each for node in (left, right) for each in origins(source.topology, node, named, node.side)]
        self._join = left.name
        self._windows, self._outer = left.windows, left.outer
        topics = [[topic for each in feeding if each.side == side for topic in each.topics] for side in (0, 1)]
        self._names = (", ".join(topics[0]), ", ".join(topics[1]))
        super().__init__(left.name, source, [left, right], feeding, refresh, records, time)

    def replay(self, seen: SeenRecords, previous: JoinSnapshot | None) -> JoinSnapshot:
        """Return a snapshot of the join."""
        return join_snapshot(self._join, self._names, self._windows, self._outer, seen, previous)
