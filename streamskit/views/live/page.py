"""A store's snapshot as HTML: pure functions of it, for a live view and for the page that a saved notebook keeps."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from streamskit.views.live.chart import bar_chart, counted, line_chart
from streamskit.views.live.html import (
    Column,
    Line,
    age,
    cell,
    grid,
    headline,
    moment,
    picture,
    saved,
    text_cell,
    time_of_day,
    value_cells,
)
from streamskit.views.live.snapshot import Row, Snapshot
from streamskit.views.live.store_source import HERE

KEY, WINDOW, FIELD = 140, 230, 100
"""The widths of columns, in pixels."""


def render(snapshot: Snapshot) -> str:
    """Return a page of its own for a saved notebook: the store's facts, chart and rows, without controls."""
    calm = replace(snapshot, rows=[replace(row, changed=False) for row in snapshot.rows])
    return saved(header(calm, "saved") + picture(chart(calm)) + table(calm), "store")


def header(snapshot: Snapshot, state: str, trouble: str = "") -> str:
    """Return the line that says what is seen and how fresh it is, above a sentence about `trouble`."""
    said = [f"{snapshot.kind} store"]
    said += [] if snapshot.total is None else [counted(snapshot.total, "row")]
    updates = [] if snapshot.updates is None else [counted(snapshot.updates, "update")]
    if state == "saved":
        said += [*updates, f"as of {moment(int(snapshot.taken_at))} UTC"]
    else:
        said += [f"{each} ({snapshot.rate:,.0f}/s)" for each in updates]
        changed = snapshot.changed_at
        said.append("no change yet" if changed is None else f"changed {age(changed, snapshot.taken_at)}")
        said.append(f"answered in {snapshot.took * 1000:.1f} ms by {snapshot.answered_by}")
    if state == "saved" and snapshot.answered_by != HERE:
        said.append(f"answered by {snapshot.answered_by}")
    return headline(snapshot.name, state, said, trouble or snapshot.stopped)


def chart(snapshot: Snapshot) -> str:
    """Return the chart of a snapshot."""
    drawn = snapshot.chart
    return bar_chart(drawn.title, drawn.bars) if drawn.bars else line_chart(drawn.title, drawn.lines)


def table(snapshot: Snapshot, height_of: int = 0) -> str:
    """Return the rows of a snapshot under a line that says which; at least as high as `height_of` rows."""
    rows, is_windowed = snapshot.rows, any(row.window for row in snapshot.rows)
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    columns = [Column("key", KEY, left=True)]
    columns += [Column("window (UTC)", WINDOW, left=True, heading="window")] * is_windowed
    columns += [Column(name, FIELD) for name in names]
    values = [value_cells([row.fields.get(name) for row in rows]) for name in names]
    lines = [_line(row, [column[number] for column in values]) for number, row in enumerate(rows)]
    return f'<div class="sk-quiet">{escape(_which(snapshot))}</div>' + grid(columns, lines, "changed", height_of)


def _line(row: Row, cells: Sequence[str]) -> Line:
    window = [cell(_window(*row.window), left=True)] if row.window else []
    whole = [text_cell(row.key), *window, *cells]
    return Line(whole, "●", "changed since the last refresh", "sk-new") if row.changed else Line(whole)


def _which(snapshot: Snapshot) -> str:
    count, search = len(snapshot.rows), snapshot.search
    condition = f"is {search}" if search.startswith('"') else f"begins with {search}"
    spanned = _spanned(snapshot)
    if not count and spanned:
        return f"No window {spanned}" + (f" has a key that {condition}." if search else ".")
    if not count:
        return f"No key {condition}." if search else "The store is empty."
    which = f"the {count} newest windows" if snapshot.rows[0].window else f"the first {count} by key"
    which = which if count == snapshot.wanted else f"all {count}"
    return " ".join(filter(None, (which, spanned))) + (f" whose key {condition}" if search else "")


def _spanned(snapshot: Snapshot) -> str:
    if snapshot.span is None:
        return ""
    first, last = snapshot.span
    day = moment(first / 1000)
    return f"starting at {day}" if first == last else f"starting from {day} to {_end(first, last)}"


def _window(start: int, end: int) -> str:
    """Write a window as two times, the day before the second only where it is another."""
    return f"{moment(start / 1000)} – {_end(start, end)}"


def _end(start: int, end: int) -> str:
    whole = moment(end / 1000)
    return time_of_day(end) if whole[:10] == moment(start / 1000)[:10] else whole
