"""What a view shows of a store at one moment, as plain values."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from streamskit.api.windows import Windowed
from streamskit.queries import KeyValue
from streamskit.views.live.chart import counted
from streamskit.views.live.store_source import HERE, SnapshotSource, Span, ask

LINES, POINTS, BARS = 5, 60, 10
"""How much a chart shows: lines, points in each, bars."""

READ_AT_MOST = 2000
"""So many rows of a key-value store are read to find the largest."""

STARTS_AT_MOST = 100
"""So many window starts are offered to choose from."""

RATE_OVER = 5.0
"""Over how many seconds updates are counted for the rate."""


@dataclass(frozen=True)
class Row:
    """One row: its key as text, its window (start and end in milliseconds), the fields of its value."""

    key: str
    window: tuple[int, int] | None
    fields: Mapping[str, Any]
    changed: bool = False


@dataclass(frozen=True)
class Chart:
    """What is drawn beside the rows: lines over time, or bars; without them the title says why not.

    `keys` are the keys of the lines as the store has them, `step` is the time between two windows in milliseconds.
    """

    title: str = ""
    lines: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    bars: Sequence[tuple[str, float]] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A store at one moment; `taken_at` and `changed_at` in seconds since 1970, `took` in seconds.

    `took` is how long the store needed to answer. `updates` is None for a store that does not count them, `total` for
    one that does not know its rows. `span` is the time in which the windows start that were asked for, in milliseconds,
    None for the newest; `starts` are those seen so far. `history` has the number of updates at moments of the last
    seconds; `stopped` says why no more will come; `answered_by` is the instance that answered.
    """

    name: str
    kind: str
    total: int | None
    updates: int | None
    search: str
    wanted: int
    rows: Sequence[Row]
    chart: Chart
    taken_at: float
    changed_at: float | None
    took: float
    history: Sequence[tuple[float, int]]
    stopped: str = ""
    span: Span | None = None
    starts: Sequence[int] = ()
    answered_by: str = HERE

    @property
    def rate(self) -> float:
        """Updates a second, over the last seconds."""
        if len(self.history) < 2:
            return 0.0
        (since, before), (until, after) = self.history[0], self.history[-1]
        return (after - before) / (until - since) if until - since > 0.1 else 0.0


def take(
    store: SnapshotSource,
    search: str = "",
    rows: int = 15,
    value: str | None = None,
    previous: Snapshot | None = None,
    clock: Callable[[], float] = time.time,
    span: Span | None = None,
) -> Snapshot:
    """Look at a store; where nothing has changed since the snapshot before, nothing is read again.

    Args:
        store: the store, from `streams.store(name)`, or one that another process holds.
        search: how the keys to show begin, or a whole key in double quotes; all keys when empty.
        rows: how many rows to show at most.
        value: the field to chart; the first that holds numbers when None.
        previous: the snapshot before, to tell what has changed since.
        clock: tells the time, in seconds since 1970.
        span: of a window store only the windows that start between two times, both included, in milliseconds.
    """
    now, updates = clock(), getattr(store, "updates", None)
    history = _history(previous, now, updates)
    asked_the_same = previous is not None and (search, rows, span) == (previous.search, previous.wanted, previous.span)
    if previous is not None and asked_the_same and updates is not None and updates == previous.updates:
        calm = [replace(row, changed=False) for row in previous.rows]
        return replace(previous, rows=calm, taken_at=now, history=history, stopped=_stopped(store))
    count = rows if store.kind == "window" else max(rows, READ_AT_MOST)
    answer = ask(store, count, search, span)
    shown = [_row(item) for item in answer.rows[:rows]]
    before = previous if asked_the_same else None
    marked = _marked(shown, before) if before else shown
    return Snapshot(
        name=store.name,
        kind=store.kind,
        total=answer.total,
        updates=updates,
        search=search,
        wanted=rows,
        rows=marked,
        chart=_chart(store, answer.rows, shown, value, before),
        taken_at=now,
        changed_at=_changed_at(previous, now, updates, any(row.changed for row in marked)),
        took=answer.took,
        history=history,
        stopped=_stopped(store),
        span=span,
        starts=_starts(previous, shown),
        answered_by=answer.by,
    )


def numeric_fields(rows: Iterable[Row]) -> list[str]:
    """Return the fields that hold numbers."""
    return list(dict.fromkeys(name for row in rows for name, value in row.fields.items() if is_number(value)))


def is_number(value: Any) -> bool:
    """Whether a value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stopped(store: SnapshotSource) -> str:
    return getattr(store, "stopped", "")


def _key(item: KeyValue) -> str:
    return str(item.key.key if isinstance(item.key, Windowed) else item.key)


def _row(item: KeyValue) -> Row:
    fields = item.value if isinstance(item.value, dict) else {"value": item.value}
    window = (item.key.start, item.key.end) if isinstance(item.key, Windowed) else None
    return Row(_key(item), window, fields)


def _marked(rows: Sequence[Row], before: Snapshot) -> list[Row]:
    known = {(row.key, row.window): row.fields for row in before.rows}
    return [replace(row, changed=known.get((row.key, row.window)) != row.fields) for row in rows]


def _starts(previous: Snapshot | None, rows: Sequence[Row]) -> list[int]:
    """Return the starts of windows that were seen, the newest first."""
    known = {*(previous.starts if previous else ()), *(row.window[0] for row in rows if row.window)}
    return sorted(known, reverse=True)[:STARTS_AT_MOST]


def _chart(
    store: SnapshotSource,
    found: Sequence[KeyValue],
    shown: Sequence[Row],
    value: str | None,
    before: Snapshot | None,
) -> Chart:
    fields = numeric_fields(shown)
    if not shown:
        return Chart()
    if not fields or (value is not None and value not in fields):
        missing = f"No field '{value}' with numbers" if value else "No field with numbers"
        return Chart(missing + (f"; there are {', '.join(fields)}" if fields else ""))
    name = value or fields[0]
    if store.kind == "window":
        return _lines(store, found, name, before.chart if before else Chart())
    everything = [(row.key, row.fields[name]) for row in map(_row, found) if is_number(row.fields.get(name))]
    largest = sorted(everything, key=lambda bar: -bar[1])[:BARS]
    return Chart(f"{name}: the largest of {counted(len(everything), 'key')}", bars=largest)


def _lines(store: Any, found: Sequence[KeyValue], name: str, before: Chart) -> Chart:
    """Return a field of the last windows of a few keys; a key that was drawn before stays while it has windows."""
    newest = max(item.key.start for item in found)
    step = before.step or found[0].key.end - found[0].key.start
    keys = {**before.keys, **{key: raw for key, raw in _keys(found) if key not in before.keys}}
    lines: dict[str, list[tuple[int, float]]] = {}
    for key, raw in keys.items():
        if len(lines) == LINES:
            break
        windows = _fields_of(store.fetch(raw, max(0, newest - step * (POINTS - 1)), newest))
        points = [(start, fields[name]) for start, fields in windows if is_number(fields.get(name))]
        if points:
            lines[key] = points[-POINTS:]
    gaps = [two - one for points in lines.values() for (one, _), (two, _) in pairwise(points)]
    drawn = dict(sorted(lines.items()))
    title = f"{name} by window start (UTC)"
    return Chart(title, lines=drawn, keys={key: keys[key] for key in drawn}, step=min([step, *gaps]))


def _keys(found: Sequence[KeyValue]) -> list[tuple[str, Any]]:
    return sorted((_key(item), item.key.key) for item in found)


def _fields_of(windows: Iterable[tuple[int, Any]]) -> Iterable[tuple[int, Mapping[str, Any]]]:
    return ((start, value if isinstance(value, dict) else {"value": value}) for start, value in windows)


def _history(previous: Snapshot | None, now: float, updates: int | None) -> list[tuple[float, int]]:
    """Return the counts of the last seconds and this one; the last before them stays, to count from."""
    if updates is None:
        return []
    counts = list(previous.history) if previous else []
    while len(counts) > 1 and counts[1][0] < now - RATE_OVER:
        counts.pop(0)
    return [*counts, (now, updates)]


def _changed_at(previous: Snapshot | None, now: float, updates: int | None, rows_differ: bool) -> float | None:
    if previous is None:
        return None
    differs = rows_differ if updates is None else updates != previous.updates
    return now if differs else previous.changed_at
