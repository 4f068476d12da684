"""A snapshot as HTML: pure functions of it, for a live view and for the page that a saved notebook keeps."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any

from streamskit.widgets.chart import bar_chart, counted, decimals, line_chart, shortened, spelled
from streamskit.widgets.snapshot import Row, Snapshot, is_number

SIGNS = {"live": "●", "paused": "❚❚", "stopped": "■", "saved": "▤", "failed": "▲"}
"""A sign for each state, so that it can be told without colour."""

MARK, KEY, WINDOW, FIELD, LINE = 20, 140, 230, 100, 26
"""The widths of columns and the height of a row, in pixels: fixed, so that nothing jumps at a refresh."""

LONGEST_CELL, FITS = 60, 12
"""How many letters of a value are written at most, and how many can surely be seen."""

READABLE_ANYWHERE = "#767676"
"""A grey that can be read on a white page and on a black one."""

LIVE, SAVED = "streamskit-live", "streamskit-saved"
"""The classes of a live view and of the page kept of it."""

STYLE = """<style>
.streamskit-store{color:var(--jp-ui-font-color1,#1f2937);
 font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums}
.streamskit-store b{font-size:15px}
.streamskit-store span{white-space:nowrap}
.streamskit-store .sk-quiet{color:var(--jp-ui-font-color2,#4b5563)}
.streamskit-store .sk-badge{border:1px solid;border-radius:9px;margin:0 4px;padding:0 9px;font-size:12px}
.streamskit-store .sk-live{color:#15803d}
.streamskit-store .sk-failed{color:var(--jp-error-color1,#b91c1c)}
[data-jp-theme-light="false"] .streamskit-store .sk-live{color:#4ade80}
[data-jp-theme-light="false"] .streamskit-store .sk-failed{color:#fca5a5}
.streamskit-store .sk-rows{overflow-x:auto}
.streamskit-store table{border-collapse:collapse;margin:0;font-size:12.5px;table-layout:fixed}
.streamskit-store table :is(th,td){border-bottom:1px solid var(--jp-border-color2,#d1d5db);height:24px;
 line-height:24px;max-width:none;overflow:hidden;padding:0 10px;text-align:right;text-overflow:ellipsis;
 white-space:nowrap}
.streamskit-store table th{border-bottom-width:2px;font-weight:600}
.streamskit-store table :is(th,td):first-child{padding:0;text-align:center}
.streamskit-store table tr.sk-new td{background:rgba(33,150,243,.13)}
</style>"""

SWITCH = f"""<style>
.jp-OutputArea-child:has(.{LIVE})+.jp-OutputArea-child:has(.{SAVED}),
.jp-OutputArea-child:has(+.jp-OutputArea-child .{SAVED}):not(:has(.{LIVE})){{display:none}}
</style>"""
"""Shows one of two outputs that follow each other: the live view if there is one, else the page kept of it."""


def render(snapshot: Snapshot) -> str:
    """Return a page of its own for a saved notebook: the store's facts, chart and rows, without controls."""
    calm = replace(snapshot, rows=[replace(row, changed=False) for row in snapshot.rows])
    inside = part(header(calm, "saved") + _picture(chart(calm)) + table(calm))
    return f'{STYLE}{SWITCH}<div class="{SAVED}">{inside}</div>'


def part(html: str) -> str:
    """Wrap a part of the page so that the style applies to it."""
    return f'<div class="streamskit-store">{html}</div>'


def notice(sentence: str) -> str:
    """Return a sentence to stand where there is no snapshot."""
    return part(f'<div class="sk-failed">{escape(sentence)}</div>')


def header(snapshot: Snapshot, state: str, trouble: str = "") -> str:
    """Return the line that says what is seen and how fresh it is, above a sentence about `trouble`."""
    updates = counted(snapshot.updates, "update")
    said = [f"{snapshot.kind} store", counted(snapshot.total, "row")]
    if state == "saved":
        said += [updates, f"as of {_moment(int(snapshot.taken_at))} UTC"]
    else:
        said += [
            f"{updates} ({snapshot.rate:,.0f}/s)",
            _age(snapshot),
            f"read in {snapshot.took * 1000:.1f} ms",
        ]
    badge = f'<span class="sk-badge sk-{state}">{SIGNS[state]} {state}</span>'
    beneath = trouble or snapshot.stopped
    return (
        f"<div><b>{escape(snapshot.name)}</b> {badge}</div><div>"
        + " · ".join(f"<span>{escape(fact)}</span>" for fact in said)
        + "</div>"
        + (f'<div class="sk-{state}">{escape(beneath)}</div>' if beneath else "")
    )


def chart(snapshot: Snapshot) -> str:
    """Return the chart of a snapshot."""
    drawn = snapshot.chart
    return bar_chart(drawn.title, drawn.bars) if drawn.bars else line_chart(drawn.title, drawn.lines)


def table(snapshot: Snapshot, height_of: int = 0) -> str:
    """Return the rows of a snapshot under a line that says which; at least as high as `height_of` rows."""
    rows, is_windowed = snapshot.rows, any(row.window for row in snapshot.rows)
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    widths = [MARK, KEY, *[WINDOW] * is_windowed, *[FIELD] * len(names)]
    heads = [_cell("", head="changed"), _cell("key", left=True, head="key")]
    heads += [_cell("window (UTC)", left=True, head="window")] * is_windowed
    heads += [_cell(name, name, head=name) for name in names]
    columns = [_column([row.fields.get(name) for row in rows]) for name in names]
    lines = [_line(row, [column[number] for column in columns]) for number, row in enumerate(rows)]
    columns_html = "".join(f'<col style="width:{width}px">' for width in widths)
    return (
        f'<div class="sk-quiet">{escape(_which(snapshot))}</div>'
        f'<div class="sk-rows" style="min-height:{LINE * (height_of + 1)}px">'
        f'<table style="width:{sum(widths)}px"><colgroup>{columns_html}</colgroup>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _line(row: Row, cells: Sequence[str]) -> str:
    mark = _cell("●", whole="changed since the last refresh") if row.changed else _cell("")
    window = _cell(_window(*row.window), left=True) if row.window else ""
    look = ' class="sk-new"' if row.changed else ""
    return f"<tr{look}>{mark}{_cell(shortened(row.key, LONGEST_CELL), row.key, left=True)}{window}{''.join(cells)}</tr>"


def _cell(short: str, whole: str = "", *, left: bool = False, head: str = "") -> str:
    """Write a cell; what `whole` says can be read by pointing at it."""
    tag = f'th scope="col" aria-label="{escape(head)}"' if head else "td"
    look = ' style="text-align:left"' if left else ""
    title = f' title="{escape(whole)}"' if whole != short or len(whole) > FITS else ""
    return f"<{tag}{look}{title if whole else ''}>{escape(short)}</{tag[:2]}>"


def _column(values: Sequence[Any]) -> list[str]:
    """Write the cells of a column: numbers with the same decimals, the rest as JSON, cut where it is long."""
    places = decimals(value for value in values if isinstance(value, float))
    cells = []
    for value in values:
        whole = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
        short = spelled(value, places if isinstance(value, float) else 0) if is_number(value) else whole
        cells.append(_cell(shortened(short, LONGEST_CELL), whole))
    return cells


def _which(snapshot: Snapshot) -> str:
    count, search = len(snapshot.rows), snapshot.search
    condition = f"is {search}" if search.startswith('"') else f"begins with {search}"
    if not count:
        return f"No key {condition}." if search else "The store is empty."
    which = f"the {count} newest windows" if snapshot.rows[0].window else f"the first {count} by key"
    return (which if count == snapshot.wanted else f"all {count}") + (f" whose key {condition}" if search else "")


def _picture(svg: str) -> str:
    """Put an SVG into an image: pages that clean a stranger's HTML let images pass, but take an SVG apart."""
    title = svg.partition("<title>")[2].partition("</title>")[0]
    grey = svg.replace("currentColor", READABLE_ANYWHERE).replace(' opacity=".8"', "")
    data = b64encode(grey.encode()).decode()
    return f'<img alt="Chart: {title}" src="data:image/svg+xml;base64,{data}">'


def _window(start: int, end: int) -> str:
    """Write a window as two times, the day before the second only where it is another."""
    day, first = _moment(start / 1000).split(" ")
    last_day, last = _moment(end / 1000).split(" ")
    return f"{day} {first} – {last}" if day == last_day else f"{day} {first} – {last_day} {last}"


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    milliseconds = f".{moment.microsecond // 1000:03d}" if moment.microsecond >= 1000 else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{milliseconds}"


def _age(snapshot: Snapshot) -> str:
    if snapshot.changed_at is None:
        return "no change yet"
    age = max(0.0, snapshot.taken_at - snapshot.changed_at)
    return f"changed {age:.0f} s ago" if age < 120 else f"changed {age / 60:.0f} min ago"
