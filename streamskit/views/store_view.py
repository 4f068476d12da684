"""`StoreView`: a state store, live in a notebook: its facts, a chart, and its rows. `ChartView`: the chart alone."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from typing import Any

from streamskit.common.durations import Duration
from streamskit.views.charts import bar_chart, counted, line_chart
from streamskit.views.controls import WindowPicker, checked_count, close_whole, search_field
from streamskit.views.html import TableColumn, TableRow, age, cell, grid, moment, text_cell, time_beside, value_cells
from streamskit.views.live_view import LiveView
from streamskit.views.page import Page, condition, rate
from streamskit.views.store_snapshot import HERE, SnapshotRow, SnapshotSource, StoreSnapshot, store_snapshot

KEY, WINDOW, FIELD, WIDE = 140, 230, 100, 160
"""The widths of columns, in pixels; a wide one has long numbers or times."""

LONG = 10**11
"""From here on a number is long; the times in milliseconds since 1970 are among those."""


def facts(snapshot: StoreSnapshot, is_saved: bool) -> Iterator[str]:
    """Say what the store holds, how fresh that is and who answered."""
    yield f"{snapshot.kind} store"
    if snapshot.total is not None:
        yield "about " * snapshot.is_about + counted(snapshot.total, "row")
    if snapshot.updates is not None:
        speed = "" if is_saved else f" ({rate(snapshot.history) or 0:,.0f}/s)"
        yield counted(snapshot.updates, "update") + speed
    if not is_saved:
        changed = snapshot.changed_at
        yield "no change yet" if changed is None else f"changed {age(changed, snapshot.taken_at)}"
        yield f"answered in {snapshot.took * 1000:.1f} ms by {snapshot.answered_by}"
    elif snapshot.answered_by != HERE:
        yield f"answered by {snapshot.answered_by}"


def chart(snapshot: StoreSnapshot) -> str:
    """Return the chart of a snapshot."""
    drawn = snapshot.chart
    return bar_chart(drawn.title, drawn.bars) if drawn.bars else line_chart(drawn.title, drawn.lines)


def table(snapshot: StoreSnapshot) -> str:
    """Return the rows of a snapshot under a line that says which."""
    rows, is_windowed = snapshot.rows, any(row.window for row in snapshot.rows)
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    columns = [TableColumn("key", KEY, left=True)]
    columns += [TableColumn("window (UTC)", WINDOW, left=True, heading="window")] * is_windowed
    columns += [TableColumn(name, _width(name, rows)) for name in names]
    values = [value_cells([row.fields.get(name) for row in rows]) for name in names]
    lines = [_line(row, [column[number] for column in values]) for number, row in enumerate(rows)]
    return f'<div class="sk-quiet">{escape(_which(snapshot))}</div>' + grid(columns, lines, "changed", snapshot.height)


def _width(name: str, rows: Sequence[SnapshotRow]) -> int:
    """Return how wide a column is: numbers that grow make it wider only where they become very long."""
    values = [row.fields.get(name) for row in rows]
    is_wide = name.endswith("(UTC)") or any(isinstance(each, int) and abs(each) >= LONG for each in values)
    return WIDE if is_wide else FIELD


def _line(row: SnapshotRow, cells: Sequence[str]) -> TableRow:
    window = [cell(_window(*row.window), left=True)] if row.window else []
    whole = [text_cell(row.key), *window, *cells]
    return TableRow(whole, "●", "changed since the last refresh", "sk-new") if row.changed else TableRow(whole)


def _which(snapshot: StoreSnapshot) -> str:
    count, search = len(snapshot.rows), snapshot.search
    spanned = _spanned(snapshot)
    if not count and spanned:
        return f"No window {spanned}" + (f" has a key that {condition(search)}." if search else ".")
    if not count:
        return f"No key {condition(search)}." if search else "The store is empty."
    which = f"the {count} newest windows" if snapshot.rows[0].window else f"the first {count} by key"
    which = which if count == snapshot.limit else f"all {count}"
    return " ".join(filter(None, (which, spanned))) + (f" whose key {condition(search)}" if search else "")


def _spanned(snapshot: StoreSnapshot) -> str:
    if snapshot.span is None:
        return ""
    first, last = snapshot.span
    day = moment(first)
    return f"starting at {day}" if first == last else f"starting from {day} to {time_beside(last, first)}"


def _window(start: int, end: int) -> str:
    """Write a window as two times, the day before the second only where it is another."""
    return f"{moment(start)} – {time_beside(end, start)}"


# ---- the view --------------------------------------------------------------------------------------------------------


class StoreView(LiveView):
    """A live view of a state store, its rows, a chart and a search by key, as the last expression of a cell.

    It looks at the store only while a page shows it, and leaves a plain table in a saved notebook. A store of this
    process is looked at as soon as it has changed, at most twenty times a second.

    Args:
        store: the store, from `streams.store(name)` or `QueryClient(url).store(name)`.
        refresh: how often to look at it, a duration of at least 50 ms; None looks every half second, and at once when a
            store of this process has changed.
        rows: how many rows to show at most, 1 to 200.
        value: the field to chart; the first that holds numbers when not given.

    Raises:
        TypeError: `store` is not a store.
        ValueError: `refresh` is not such a duration, or `rows` not such a number.

    >>> StoreView(streams.store("trade-aggregates"), refresh="1 second", value="count")  # doctest: +SKIP

    Mirrors what a Kafka Streams application shows of a store over its REST layer.
    """

    PAGE = Page("store", "The store", facts, {"chart": chart, "table": table})

    def __init__(
        self, store: SnapshotSource, refresh: Duration | None = None, rows: int = 15, value: str | None = None
    ) -> None:
        if not isinstance(store, SnapshotSource):
            raise TypeError(
                f"StoreView shows a store, and this is a {type(store).__name__}: write "
                "StoreView(streams.store('a-name'))."
            )
        self._store, self._rows, self._value = store, checked_count(rows, "rows", 200), value
        self._looks_at_once = refresh is None
        self._search, self._windows = search_field(self.refresh), WindowPicker()
        picker = [self._windows] if store.kind == "window" else []
        super().__init__(f"'{store.name}'", "500 ms" if refresh is None else refresh, [self._search, *picker])
        self._windows.when_chosen(self.refresh)
        self._every.observe(self._on_pace, "value")

    def has_news(self) -> bool:
        """Whether a store of this process has changed since the last look."""
        seen = self._snapshot.updates if self._snapshot else None
        if not self._looks_at_once or seen is None:
            return False
        with suppress(Exception):  # a store that refuses, also a user's own, reports why at the next regular look
            return bool(seen != getattr(self._store, "updates", seen))
        return False

    def let_go(self) -> None:
        """Close the choice of windows, which only a view of windows shows."""
        close_whole(self._windows)

    def take(self, previous: StoreSnapshot | None) -> StoreSnapshot:
        """Look at the store."""
        span = self._windows.span
        return store_snapshot(self._store, self._search.value, self._rows, self._value, previous, span=span)

    def redraw(self) -> None:
        """Show the snapshot that there is, and offer the windows that were seen."""
        self._windows.offer(self._snapshot.starts)
        self._trouble = self._windows.trouble
        super().redraw()

    def _on_pace(self, change: Any) -> None:
        self._looks_at_once = False  # the user has chosen a pace


class ChartView(StoreView):
    """The chart of a `StoreView` without its rows, for a `Dashboard`: the largest values, or lines of windows.

    Args:
        store: the store, from `streams.store(name)` or `QueryClient(url).store(name)`.
        refresh: how often to look at it, a duration of at least 50 ms; None as in `StoreView`.
        rows: of how many rows to draw the chart of a window store, 1 to 200.
        value: the field to chart; the first that holds numbers when not given.

    Raises:
        TypeError: `store` is not a store.
        ValueError: `refresh` is not such a duration, or `rows` not such a number.

    >>> ChartView(streams.store("trade-aggregates"), value="count")  # doctest: +SKIP
    """

    PAGE = Page("store", "The store", facts, {"chart": chart})
