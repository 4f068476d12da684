"""The tail of a topic as HTML: its newest records with keys, times and headers."""

from dataclasses import replace
from html import escape

from streamskit.views.live.chart import counted
from streamskit.views.live.html import Column, Line, cell, grid, headline, moment, saved, text_cell
from streamskit.views.live.topic_snapshot import TopicRow, TopicSnapshot

COLUMNS = (
    Column("partition", 95),
    Column("offset", 90),
    Column("timestamp (UTC)", 190, left=True),
    Column("key", 140, left=True),
    Column("value", 340, left=True),
    Column("headers", 160, left=True),
)


def render_topic(snapshot: TopicSnapshot) -> str:
    """Return a page of its own for a saved notebook."""
    calm = replace(snapshot, rows=[replace(row, is_new=False) for row in snapshot.rows])
    return saved(header(calm, "saved") + table(calm), "topic")


def header(snapshot: TopicSnapshot, state: str, trouble: str = "") -> str:
    """Return the lines that say how much the topic holds and how fast it grows."""
    ends = ", ".join(f"{number}: {end:,}" for number, end in sorted(snapshot.ends.items())[:16])
    said = [counted(len(snapshot.ends), "partition"), f"end offsets {ends}"]
    said += [f"as of {moment(int(snapshot.taken_at))} UTC"] if state == "saved" else [f"{snapshot.rate:,.0f} records/s"]
    return headline(snapshot.name, state, said, trouble or snapshot.stopped)


def table(snapshot: TopicSnapshot, height_of: int = 0) -> str:
    """Return the records, under a line that says which; at least as high as `height_of` rows."""
    lines = [_line(row) for row in snapshot.rows]
    return f'<div class="sk-quiet">{escape(_which(snapshot))}</div>' + grid(COLUMNS, lines, "new", height_of)


def _line(row: TopicRow) -> Line:
    cells = [cell(str(row.partition)), cell(f"{row.offset:,}"), cell(moment(row.timestamp / 1000), left=True)]
    cells += [text_cell("null" if text is None else text) for text in (row.key, row.value)]
    cells.append(text_cell(row.headers))
    return Line(cells, "●", "new since the last refresh", "sk-new") if row.is_new else Line(cells)


def _which(snapshot: TopicSnapshot) -> str:
    count, search = len(snapshot.rows), snapshot.search
    where = "" if snapshot.partition is None else f" of partition {snapshot.partition}"
    among = f" among the last {snapshot.kept:,}{where}"
    condition = f"is {search}" if search.startswith('"') else f"begins with {search}"
    if not count:
        return f"No key {condition}{among}." if search else f"There are no records{where} yet."
    newest = f"the {counted(count, 'newest record')}, the newest first"
    return newest + (f", whose key {condition},{among}" if search else where)
