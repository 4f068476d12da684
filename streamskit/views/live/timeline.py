"""An axis of event time as SVG, and what stands on it: marks of records, bars of windows, the line of stream time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from streamskit.views.live.chart import COLOURS, text, time_ticks
from streamskit.views.live.html import time_of_day
from streamskit.views.live.replay import Window

WIDTH, LEFT, RIGHT = 960, 110, 16
TOP, BOTTOM = 46, 24
"""Room for the title and the label of stream time, and for the times beneath."""

RED, AMBER = "#dc2626", "#d97706"
"""Can be read on a white page and on a black one."""

CROSS = "M-5-5L5 5M5-5L-5 5"

NARROW = 26
"""A window so narrow, in pixels, has no room for its number."""


@dataclass(frozen=True)
class Axis:
    """Event time from left to right: two times in milliseconds since 1970, and where they are."""

    first: int
    last: int

    @classmethod
    def of(cls, times: Iterable[int]) -> "Axis":
        """Return an axis that shows these times, with a little room at both ends."""
        known = list(times) or [0]
        first, last = min(known), max(known)
        room = max(1, (last - first) // 40)
        return cls(first - room, last + room)

    def x(self, time: int) -> float:
        """Return where a time is; those beyond the ends are at the ends."""
        share = (min(max(time, self.first), self.last) - self.first) / (self.last - self.first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def times(self, bottom: float) -> Iterator[str]:
        """Draw round times, each a line from the top to the bottom."""
        for time, label in time_ticks(self.first, self.last, about=8):
            x = self.x(time)
            yield f'<path d="M{x:.1f} {TOP}V{bottom:.1f}" stroke="currentColor" opacity=".12"/>'
            yield text(x, bottom + 16, label, "middle")

    def stream_time(self, time: int, bottom: float) -> Iterator[str]:
        """Draw the line up to which event time has come."""
        x = self.x(time)
        anchor = "end" if x > WIDTH * 0.75 else "start"
        yield f'<path d="M{x:.1f} {TOP - 12}V{bottom:.1f}" stroke="{COLOURS[1]}" stroke-width="2"/>'
        words = f"stream time {time_of_day(time)}"
        yield label(x + (-6 if anchor == "end" else 6), TOP - 6, words, anchor, COLOURS[1])

    def closed(self, until: int, bottom: float) -> Iterator[str]:
        """Shade the time that is over: windows that end there are closed."""
        width = self.x(until) - LEFT
        if until > self.first:
            yield f'<rect x="{LEFT}" y="{TOP}" width="{width:.1f}" height="{bottom - TOP:.1f}" opacity=".07"/>'
            yield text(LEFT + 4, TOP + 11, "closed", "start") if width > 50 else ""


def label(x: float, y: float, words: str, anchor: str, colour: str) -> str:
    """Write words in a colour, bold."""
    look = f'text-anchor="{anchor}" fill="{colour}" font-weight="600"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(words)}</text>'


def record(x: float, y: float, told: str, fate: str, is_latest: bool, colour: str = "currentColor") -> str:
    """Draw a record: a dot, a diamond where it was late for some windows, a cross where it was dropped.

    Args:
        x: where.
        y: where.
        told: what can be read by pointing at it.
        fate: "kept", "late" or "dropped".
        is_latest: whether it is the last that came, which has a ring.
        colour: of the dot.
    """
    ring = f'<circle r="9" fill="none" stroke="{COLOURS[1]}" stroke-width="2"/>' if is_latest else ""
    if fate == "dropped":
        mark = f'<path d="{CROSS}" stroke="{RED}" stroke-width="2.5" fill="none"/>'
    elif fate == "late":
        mark = f'<path d="M0-6L6 0 0 6-6 0z" fill="{AMBER}"/>'
    else:
        mark = f'<circle r="4.5" fill="{colour}"/>'
    return f'<g transform="translate({x:.1f} {y:.1f})"><title>{escape(told)}</title>{ring}{mark}</g>'


BLUE = f'fill="{COLOURS[0]}" stroke="{COLOURS[0]}" stroke-width="1.4"'

LOOKS = {
    "open": f'{BLUE} fill-opacity=".28"',
    "in grace": f'{BLUE} fill-opacity=".1" stroke-dasharray="5 3"',
    "closed": 'fill="currentColor" fill-opacity=".13" stroke="none"',
}
"""How a window is drawn in each state."""


def bar(axis: Axis, window: Window, y: float, count: int, state: str) -> str:
    """Draw a window, with the number of its records where there is room."""
    x, width = axis.x(window.start), max(3.0, axis.x(window.end) - axis.x(window.start))
    times = f"{time_of_day(window.start)} – {time_of_day(window.end)}"
    told = f"{window.key}, {times}: {count} record{'s' * (count != 1)}, {state}"
    number = text(x + width / 2, y + 10.5, str(count), "middle") if width > NARROW else ""
    return (
        f'<g><title>{escape(told)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="13" rx="2" '
        f"{LOOKS[state]}/>{number}</g>"
    )


def rows(windows: Sequence[Window]) -> dict[Window, int]:
    """Return for each window the lowest row in which it overlaps none before it."""
    ends: list[int] = []
    found = {}
    for window in sorted(windows, key=lambda window: (window.start, window.end)):
        row = next((row for row, end in enumerate(ends) if end <= window.start), len(ends))
        ends[row : row + 1] = [max(window.end, window.start + 1)]
        found[window] = row
    return found
