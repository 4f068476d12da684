"""What the pages of all live views are made of: a style, a headline, a table, a picture. HTML as text."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from html import escape, unescape
from typing import Any
from uuid import UUID

from streamskit.common.svg import as_image, printable
from streamskit.common.themes import follows_the_page, on_dark_pages
from streamskit.views.charts import INK, dated, decimals, shortened, spelled

SIGNS = {"live": "●", "paused": "❚❚", "resting": "◌", "stopped": "■", "saved": "▤", "failed": "▲"}
"""A sign for each state, so that it can be recognised without colour."""

MARK, LINE = 20, 26
"""The width of the column of signs and the height of a row, in pixels: fixed, so that nothing jumps at a refresh."""

LONGEST_CELL, LONGEST_WHOLE, FITS = 60, 2000, 12
"""How many characters of a value are written at most, how many are seen by pointing at it, and how many always fit."""

NULL = "null, which is not the text null"
"""What is read by pointing at a null."""

LIGHT_INK = "#e5e7eb"
"""The colour of lines and words in an image on dark paper."""

PAPER = (
    "<style>@media (prefers-color-scheme:dark)"
    f'{{.paper{{fill:#111111}}[fill="{INK}"]{{fill:{LIGHT_INK}}}[stroke="{INK}"]{{stroke:{LIGHT_INK}}}}}</style>'
    '<rect class="paper" width="100%" height="100%" fill="#ffffff"/>'
)
"""What an image is drawn on, light or dark as its page is: no grey can be read well enough on both."""

CODE = "overflow-x:auto;white-space:pre;word-break:normal"
"""The style of code: it keeps its lines and scrolls in its frame, where JupyterLab would break words."""

LIVE, SAVED = "streamskit-live", "streamskit-saved"
"""The classes of a live view and of the page kept of it."""

STYLE = (
    """<style>
.streamskit-view{color:var(--jp-ui-font-color1,#1f2937);
 font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums}
.streamskit-saved .streamskit-view{color:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#1f2937))}
.streamskit-saved .streamskit-view .sk-quiet{color:var(--jp-ui-font-color2,var(--vscode-descriptionForeground,#4b5563))}
.streamskit-view b{font-size:15px}
.streamskit-view span{white-space:nowrap}
.streamskit-view .sk-quiet{color:var(--jp-ui-font-color2,#4b5563)}
.streamskit-view .sk-badge{border:1px solid;border-radius:9px;margin:0 4px;padding:0 9px;font-size:12px}
.streamskit-view .sk-live{color:#15803d}
.streamskit-view .sk-failed{color:var(--jp-error-color1,#b91c1c)}
"""
    + on_dark_pages(".streamskit-view .sk-live", "color:#4ade80")
    + "\n"
    + on_dark_pages(".streamskit-view .sk-failed", "color:#fca5a5")
    + """
.streamskit-view .sk-rows{overflow-x:auto}
.streamskit-live :is(.widget-html-content,.jupyter-widget-html-content){min-width:0;overflow:auto hidden}
.streamskit-live .sk-rows{overflow-x:visible}
.streamskit-view table{color:inherit;border-collapse:collapse;margin:0;font-size:12.5px;table-layout:fixed}
.streamskit-view table :is(th,td){border-bottom:1px solid var(--jp-border-color2,#d1d5db);height:24px;
 line-height:24px;max-width:none;overflow:hidden;padding:0 10px;text-align:right;text-overflow:ellipsis;
 white-space:nowrap}
.streamskit-view table th{border-bottom-width:2px;font-weight:600}
.streamskit-view table :is(th,td):first-child{padding:0;text-align:center}
.streamskit-view table tr.sk-new td{background:rgba(33,150,243,.13)}
.streamskit-view table tr.sk-bad td{background:rgba(220,38,38,.13)}
.streamskit-view table td.sk-null{font-style:italic;opacity:.75}
.streamskit-view progress{width:100%;height:10px;vertical-align:middle}
"""
    + follows_the_page(f".{SAVED} img")
    + "</style>"
)

DISCONNECTED = (
    """<style>
.streamskit-view.sk-disconnected,.jupyter-widgets-disconnected.streamskit-live .sk-badge{display:none}
.jupyter-widgets-disconnected.streamskit-live .sk-disconnected{display:block}
.jupyter-widgets-disconnected.streamskit-live .jupyter-widgets-disconnected::before{content:none}
</style>"""
    '<div class="streamskit-view sk-disconnected" role="status"><div class="sk-failed">▲ Not live any more: the kernel '
    "of this view was restarted, has ended, or is out of reach. Run the cell again.</div></div>"
)
"""What a live view says when its page, which marks widgets without a kernel, has lost it; unseen until then."""

OUTPUTS = (".jp-OutputArea-child", ".output_container", ".output_area")
"""What holds one output of a cell: in JupyterLab, Notebook 7 and nbconvert; in VS Code; in nbviewer's older pages.

In VS Code all outputs of a notebook are in one page: a `.cell_container` for each cell, in it an `.output_container`
for each output (siblings, so `+` finds the next one), and in that the `.output` with what the output shows.
"""

SWITCH = (
    "<style>"
    + ",\n".join(
        f"{output}:has(.{LIVE})+{output}:has(.{SAVED}),\n{output}:has(+{output} .{SAVED}):not(:has(.{LIVE}))"
        for output in OUTPUTS
    )
    + "{display:none!important}</style>"
)
"""Shows one of two outputs that follow each other: the live view if there is one, else the page kept of it."""


def part(html: str, kind: str) -> str:
    """Wrap a part of a view's page so that the style applies to it; `kind` says of which view, such as "store"."""
    return f'<div class="streamskit-view streamskit-{kind}">{printable(html)}</div>'


def notice(sentence: str, kind: str) -> str:
    """Return a sentence to show in place of a snapshot."""
    return part(f'<div class="sk-failed">{escape(sentence)}</div>', kind)


def headline(name: str, state: str, facts: Iterable[str], beneath: str = "", is_trouble: bool = False) -> str:
    """Return the lines that say what is seen and how fresh it is; what is `beneath` explains that, or is trouble."""
    badge = f'<span class="sk-badge sk-{state}">{SIGNS[state]} {state}</span>'
    return (
        f"<div><b>{escape(name)}</b> {badge}</div><div>"
        + " · ".join(f"<span>{escape(fact)}</span>" for fact in facts)
        + "</div>"
        + (f'<div class="sk-{"failed" if is_trouble else state}">{escape(beneath)}</div>' if beneath else "")
    )


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its title, its width in pixels, and whether its cells are left-aligned.

    `heading` is read out in place of the title.
    """

    title: str
    width: int
    left: bool = False
    heading: str = ""


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its cells, each made by `cell`, the sign before them and what it means, and its look.

    `look` is "sk-new", "sk-bad" or nothing.
    """

    cells: Sequence[str]
    sign: str = ""
    meaning: str = ""
    look: str = ""


def grid(columns: Sequence[TableColumn], lines: Sequence[TableRow], signs: str, height_of: int = 0) -> str:
    """Return a table with a column of signs before the others, at least as high as `height_of` rows.

    Args:
        columns: the columns.
        lines: the rows.
        signs: what the signs mean, for screen readers.
        height_of: reserve the height of this many rows, so that the page below does not jump.
    """
    widths = [MARK, *(column.width for column in columns)]
    heads = [cell("", head=signs)]
    heads += [cell(c.title, c.title, left=c.left, head=c.heading or c.title) for c in columns]
    body = "".join(
        f'<tr class="{line.look}">'.replace(' class=""', "")
        + cell(line.sign, whole=line.meaning)
        + "".join(line.cells)
        + "</tr>"
        for line in lines
    )
    return (
        f'<div class="sk-rows" style="min-height:{LINE * (height_of + 1)}px">'
        f'<table style="width:{sum(widths)}px"><colgroup>'
        + "".join(f'<col style="width:{width}px">' for width in widths)
        + f"</colgroup><thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def cell(short: str, whole: str = "", *, left: bool = False, head: str = "", is_null: bool = False) -> str:
    """Write a cell; what `whole` says can be read by pointing at it. One that is null looks unlike the text "null"."""
    tag = f'th scope="col" aria-label="{escape(head)}"' if head else 'td class="sk-null"' if is_null else "td"
    look = ' style="text-align:left"' if left else ""
    title = f' title="{escape(shortened(whole, LONGEST_WHOLE))}"' if whole != short or len(whole) > FITS else ""
    return f"<{tag}{look}{title if whole else ''}>{escape(short)}</{tag[:2]}>"


def text_cell(text: str | None) -> str:
    """Write a text, cut where it is long, or null; the whole of it can be read by pointing at it."""
    if text is None:
        return cell("null", NULL, left=True, is_null=True)
    return cell(shortened(text, LONGEST_CELL), text, left=True)


def value_cells(values: Sequence[Any]) -> list[str]:
    """Write the cells of a column: numbers with the same decimals, the rest as JSON, cut where it is long."""
    places = decimals(value for value in values if isinstance(value, float))
    cells = []
    for value in values:
        whole = short = as_text(value)
        if isinstance(value, float):
            short = spelled(value, places)
        elif isinstance(value, int) and not isinstance(value, bool):
            short = f"{value:,}"
        is_null = value is None
        cells.append(cell(shortened(short, LONGEST_CELL), NULL if is_null else whole, is_null=is_null))
    return cells


def as_text(value: Any) -> str:
    """Write a key or a value: text, ids, dates and bytes as they are, all else as JSON."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if not isinstance(value, int | float | list | tuple | dict | None):
        return _as_words(value)
    try:
        return json.dumps(value, default=_as_json, ensure_ascii=False)
    except (TypeError, ValueError):  # the name of a field is no text, or it contains itself
        return repr(value)


def _as_json(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else _as_words(value)


def _as_words(value: object) -> str:
    return str(value) if isinstance(value, str | UUID | date | time) else repr(value)


def picture(svg: str) -> str:
    """Put an SVG into an image, on paper of its own, with its description in words."""
    described = re.search("<desc>(.*?)</desc>", svg)
    words = described[1] if described else "Chart: " + svg.partition("<title>")[2].partition("</title>")[0]
    title, end, drawn = svg.replace('"currentColor"', f'"{INK}"').partition("</title>")
    return as_image(f"{title}{end}{PAPER}{drawn}", unescape(words))


def moment(timestamp: int) -> str:
    """Write a timestamp in milliseconds since 1970 as date and time of day in UTC, no finer than it has to be."""
    return dated(timestamp, lambda at: f"{at:%Y-%m-%d} {_time_of(at)}")


def time_of_day(timestamp: int) -> str:
    """Write a timestamp in milliseconds since 1970 as a time of day in UTC, no finer than it has to be."""
    return dated(timestamp, _time_of)


def time_beside(timestamp: int, other: int) -> str:
    """Write a timestamp as a time of day, with its date where that is not the day of another timestamp."""
    whole = moment(timestamp)
    return time_of_day(timestamp) if whole[:10] == moment(other)[:10] else whole


def _time_of(at: datetime) -> str:
    return at.time().isoformat("milliseconds" if at.microsecond else "seconds")


def age(since: float, now: float) -> str:
    """Write how long ago something was, both in seconds since 1970."""
    seconds = max(0.0, now - since)
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
