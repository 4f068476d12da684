"""A store as a view sees it: the rows that it returns, wherever it is, and a snapshot of them."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from streamskit.api.windows import Windowed
from streamskit.common.errors import InvalidStateStorePartitionError, StreamsError
from streamskit.queries import KeyValue
from streamskit.state.rows import beginning, matches
from streamskit.state.stores import ValueAndTimestamp
from streamskit.views.charts import counted
from streamskit.views.html import moment
from streamskit.views.page import Snapshot, counted_until

LINES, POINTS, BARS = 5, 60, 10
"""How much a chart shows: lines, points in each, bars."""

READ_AT_MOST = 2000
"""How many rows of a key-value store are read to find the largest."""

EXPIRING = ("window", "session")
"""The kinds of stores that count rows which have expired, and show them no more, until they delete many at once."""

STARTS_AT_MOST = 100
"""How many window starts are offered to choose from."""

Span = tuple[int, int]
"""The first and the last time at which a window may start, in milliseconds since 1970."""

HERE = "this process"
"""What is shown as the source of answers for a store that does not name one."""


@runtime_checkable
class SnapshotSource(Protocol):
    """A store that a view can look at: `streams.store(name)`, or `QueryClient(url).store(name)`.

    It may have more, which the view then uses: `search(text, rows)` or `peek(rows, wanted)` for a few rows only,
    `updates` and `partitions` to tell that nothing has changed, `stopped` to say why nothing will, `answered_by` for
    the instance that answered last, and of a window store `fetch` and `fetch_all`.
    """

    name: str
    kind: str

    def all(self) -> Sequence[KeyValue]:
        """Return every row."""


@dataclass(frozen=True)
class StoreAnswer:
    """The rows that a store returned, how many it has in all (None if unknown), how long it took, and who answered.

    `is_about` says whether rows that have expired may be among those in all.
    """

    rows: Sequence[KeyValue]
    total: int | None
    is_about: bool
    took: float
    by: str


def ask(store: SnapshotSource, count: int, search: str = "", span: Span | None = None) -> StoreAnswer:
    """Ask for the first rows by key, or for the newest windows.

    Args:
        store: the store.
        count: how many rows at most.
        search: how their keys begin, or a whole key in double quotes; any when empty.
        span: the range of starts of the windows to return; any start when None.
    """
    began = time.perf_counter()
    rows = [KeyValue(*row) for row in _rows(store, count, search, span)]
    took = time.perf_counter() - began
    by = str(getattr(store, "answered_by", None) or HERE)
    if store.kind not in EXPIRING:
        return StoreAnswer(rows, _total(store), False, took, by)
    is_whole = not search and span is None and len(rows) < count
    return StoreAnswer(rows, len(rows) if is_whole else _total(store), not is_whole, took, by)


def _rows(store: Any, count: int, search: str, span: Span | None) -> Sequence[KeyValue]:
    def is_wanted(key: Any) -> bool:
        return matches(str(key), search)

    if span is not None:
        return _first(store.fetch_all(*span), count, is_wanted)
    if hasattr(store, "search"):  # the store can search where its rows are
        return store.search(search, count)
    if hasattr(store, "peek"):
        return store.peek(count, is_wanted if search else None, beginning(search))
    return _first(store.all(), count, is_wanted)


def _first(rows: Sequence[KeyValue], count: int, is_wanted: Callable[[Any], bool]) -> list[KeyValue]:
    """Return the newest windows, those of the same time in key order; or the first rows in the order they come."""
    fitting = [row for row in map(KeyValue._make, rows) if is_wanted(_inner(row.key))]
    if any(isinstance(row.key, Windowed) for row in fitting):
        fitting.sort(key=lambda row: (-row.key.start, str(row.key.key)))
    return fitting[:count]


def _inner(key: Any) -> Any:
    return key.key if isinstance(key, Windowed) else key


def _total(store: Any) -> int | None:
    return int(store.approximate_num_entries()) if hasattr(store, "approximate_num_entries") else None


# ---- the snapshot ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SnapshotRow:
    """One row: its key as text, its window (start and end in milliseconds), the fields of its value."""

    key: str
    window: tuple[int, int] | None
    fields: Mapping[str, Any]
    changed: bool = False


@dataclass(frozen=True)
class StoreChart:
    """What is drawn beside the rows: lines over time, or bars; without them the title says why not.

    `keys` are the keys of the lines as the store has them, `step` is the time between two windows in milliseconds.
    """

    title: str = ""
    lines: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    bars: Sequence[tuple[str, float]] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class StoreSnapshot(Snapshot):
    """A store at one moment; `changed_at` in seconds since 1970, `took` in seconds.

    `took` is how long the store needed to answer. `updates` is None for a store that does not count them, `total` for
    one that does not count its rows, and `is_about` if expired ones may be among these; `partitions` are those of a
    store of this process. `span` is the requested range of window starts, in milliseconds, None for the newest;
    `starts` are those seen so far. `history` has the number of updates at moments of the last seconds; `answered_by` is
    the instance that answered; the table has room for `height` rows.
    """

    kind: str
    total: int | None
    updates: int | None
    search: str
    limit: int
    rows: Sequence[SnapshotRow]
    chart: StoreChart
    changed_at: float | None
    took: float
    history: Sequence[tuple[float, int]]
    height: int
    span: Span | None = None
    starts: Sequence[int] = ()
    answered_by: str = HERE
    partitions: Set[int] = frozenset()
    is_about: bool = False

    def calm(self) -> "StoreSnapshot":
        """Return the same without marks, in a table no higher than its rows."""
        return replace(self, rows=[replace(row, changed=False) for row in self.rows], height=0)


def store_snapshot(
    store: SnapshotSource,
    search: str = "",
    rows: int = 15,
    value: str | None = None,
    previous: StoreSnapshot | None = None,
    clock: Callable[[], float] = time.time,
    span: Span | None = None,
) -> StoreSnapshot:
    """Look at a store; if nothing has changed since the previous snapshot, nothing is read again.

    A store that has stopped and does not answer any more is shown as it was.

    Args:
        store: the store, from `streams.store(name)`, or one that another process holds.
        search: how the keys to show begin, or a whole key in double quotes; all keys when empty.
        rows: how many rows to show at most.
        value: the field to chart; the first that holds numbers when None.
        previous: the snapshot before, to tell what has changed since.
        clock: tells the time, in seconds since 1970.
        span: of a window store only the windows that start between two times, both included, in milliseconds.

    Raises:
        StreamsError: the store does not answer.
    """
    try:
        return _look(store, search, rows, value, previous, clock, span)
    except StreamsError:
        stopped = getattr(store, "stopped", "")
        if previous is None or not stopped:
            raise
        return replace(previous.calm(), height=rows, taken_at=clock(), stopped=stopped)


def _look(
    store: SnapshotSource,
    search: str,
    rows: int,
    value: str | None,
    previous: StoreSnapshot | None,
    clock: Callable[[], float],
    span: Span | None,
) -> StoreSnapshot:
    now, updates = clock(), getattr(store, "updates", None)
    partitions = frozenset(getattr(store, "partitions", ()))
    past = previous.history if previous is not None else ()
    history = [] if updates is None else counted_until(past, now, updates)
    asked_the_same = previous is not None and (search, rows, span) == (previous.search, previous.limit, previous.span)
    is_as_before = previous is not None and (updates, partitions) == (previous.updates, previous.partitions)
    if previous is not None and asked_the_same and updates is not None and is_as_before:
        calm = previous.calm()
        return replace(calm, height=rows, taken_at=now, history=history, stopped=getattr(store, "stopped", ""))
    count = rows if store.kind == "window" else max(rows, READ_AT_MOST)
    answer = ask(store, count, search, span)
    shown = [_row(item) for item in answer.rows[:rows]]
    before = previous if asked_the_same else None
    marked = _marked(shown, before) if before else shown
    return StoreSnapshot(
        name=store.name,
        kind=store.kind,
        total=answer.total,
        is_about=answer.is_about,
        updates=updates,
        search=search,
        limit=rows,
        rows=marked,
        chart=_chart(store, answer, shown, value, before, is_cut=len(answer.rows) == count != answer.total),
        taken_at=now,
        changed_at=_changed_at(previous, now, updates, any(row.changed for row in marked)),
        took=answer.took,
        history=history,
        stopped=getattr(store, "stopped", ""),
        height=rows,
        span=span,
        starts=_starts(previous, shown),
        answered_by=answer.by,
        partitions=partitions,
    )


def numeric_fields(rows: Iterable[SnapshotRow]) -> list[str]:
    """Return the fields that hold numbers."""
    return list(dict.fromkeys(name for row in rows for name, value in row.fields.items() if can_be_drawn(value)))


def can_be_drawn(value: Any) -> bool:
    """Whether a value can be drawn."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _drawn(value: Any) -> float:
    """Return a number as it is drawn: NaN for one that is too large for a float."""
    try:
        drawn = float(value)
    except (OverflowError, ValueError):  # the latter of a Decimal that is a signalling NaN
        return math.nan
    return value if isinstance(value, int) else drawn


def _key(item: KeyValue) -> str:
    return str(_inner(item.key))


def _row(item: KeyValue) -> SnapshotRow:
    window = (item.key.start, item.key.end) if isinstance(item.key, Windowed) else None
    return SnapshotRow(_key(item), window, _fields(item.value))


def _marked(rows: Sequence[SnapshotRow], before: StoreSnapshot) -> list[SnapshotRow]:
    known = {(row.key, row.window): row.fields for row in before.rows}
    return [replace(row, changed=_differ(known.get((row.key, row.window)), row.fields)) for row in rows]


def _differ(fields: Mapping[str, Any] | None, others: Mapping[str, Any]) -> bool:
    return repr(fields) != repr(others)  # a NaN is not even equal to itself


def _starts(previous: StoreSnapshot | None, rows: Sequence[SnapshotRow]) -> list[int]:
    """Return the starts of windows that were seen, the newest first."""
    known = {*(previous.starts if previous else ()), *(row.window[0] for row in rows if row.window)}
    return sorted(known, reverse=True)[:STARTS_AT_MOST]


def _chart(
    store: SnapshotSource,
    answer: StoreAnswer,
    shown: Sequence[SnapshotRow],
    value: str | None,
    before: StoreSnapshot | None,
    is_cut: bool,
) -> StoreChart:
    fields = numeric_fields(shown)
    if not shown:
        return StoreChart()
    if not fields or (value is not None and value not in fields):
        missing = f"No field '{value}' with numbers" if value else "No field with numbers"
        return StoreChart(missing + (f"; there are {', '.join(fields)}" if fields else ""))
    name = value or fields[0]
    if store.kind == "window":
        return _lines(store, answer.rows, name, before.chart if before else StoreChart())
    bars = [(row.key, _drawn(row.fields[name])) for row in map(_row, answer.rows) if can_be_drawn(row.fields.get(name))]
    everything = [bar for bar in bars if math.isfinite(bar[1])]  # a NaN has no place in an order
    largest = sorted(everything, key=lambda bar: -bar[1])[:BARS]
    among = counted(len(everything), "session" if shown[0].window else "key")
    return StoreChart(f"{name}: the largest of {'the first ' if is_cut else ''}{among}", bars=largest)


def _lines(store: Any, items: Sequence[KeyValue], name: str, before: StoreChart) -> StoreChart:
    """Return the lines of a field over the last windows of a few keys; a drawn key stays while it has windows here."""
    newest = max(item.key.start for item in items)
    step = before.step or items[0].key.end - items[0].key.start
    keys = {**before.keys, **{key: raw for key, raw in _keys(items) if key not in before.keys}}
    lines: dict[str, list[tuple[int, float]]] = {}
    for key, raw in keys.items():
        if len(lines) == LINES:
            break
        with suppress(InvalidStateStorePartitionError):  # another instance has the key now: it is drawn no longer
            windows = store.fetch(raw, max(0, newest - step * (POINTS - 1)), newest)
            values = [(start, _fields(value)) for start, value in windows]
            points = [(start, _drawn(fields[name])) for start, fields in values if can_be_drawn(fields.get(name))]
            if points:
                lines[key] = points[-POINTS:]
    gaps = [two - one for points in lines.values() for (one, _), (two, _) in pairwise(points)]
    drawn = dict(sorted(lines.items()))
    title = f"{name} by window start (UTC)"
    return StoreChart(title, lines=drawn, keys={key: keys[key] for key in drawn}, step=min([step, *gaps]))


def _keys(items: Sequence[KeyValue]) -> list[tuple[str, Any]]:
    return sorted((_key(item), item.key.key) for item in items)


def _fields(value: Any) -> Mapping[str, Any]:
    if isinstance(value, ValueAndTimestamp):
        return {**_fields(value.value), "timestamp (UTC)": moment(value.timestamp)}
    return {str(name): each for name, each in value.items()} if isinstance(value, dict) else {"value": value}


def _changed_at(previous: StoreSnapshot | None, now: float, updates: int | None, rows_differ: bool) -> float | None:
    if previous is None:
        return None
    differs = rows_differ if updates is None else updates != previous.updates
    return now if differs else previous.changed_at
