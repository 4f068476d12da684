"""An axis of event time as SVG, and what is drawn on it: marks of records, bars of windows, the line of stream time.

The rows of windows are also computed here for the figures of `timelines`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamskit.api.windows import Windowed
from streamskit.common.svg import at, element, group, path, rect
from streamskit.common.svg import text as words_at
from streamskit.views.charts import COLOURS, frame, shortened, text, time_ticks
from streamskit.views.html import time_beside

WIDTH, LEFT, RIGHT = 960, 110, 16
TOP, BOTTOM = 46, 24
"""Room for the title and the label of stream time, and for the times beneath."""

RED, AMBER, GREEN = "#dc2626", "#d97706", "#15803d"
"""Can be read on a white page and on a black one."""

NARROW = 26
"""A window so narrow, in pixels, has no room for its number."""

Look = Mapping[str, str | float]

BLUE: dict[str, str | float] = {"fill": COLOURS[0], "stroke": COLOURS[0], "stroke_width": 1.4}

WINDOW_LOOKS: Mapping[str, Look] = {
    "open": BLUE | {"fill_opacity": ".28"},
    "in grace": BLUE | {"fill_opacity": ".1", "stroke_dasharray": "5 3"},
    "closed": {"fill": "currentColor", "fill_opacity": ".13", "stroke": "none"},
    "missing": {"fill": GREEN, "fill_opacity": ".15", "stroke": GREEN, "stroke_dasharray": "5 3"},
    "extra": {"fill": RED, "fill_opacity": ".15", "stroke": RED},
}
"""How a window is drawn in each state, and how one that is missing from a check's results or unexpected is drawn."""


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
        """Return the x of a time; a time beyond an end is drawn at that end."""
        share = (min(max(time, self.first), self.last) - self.first) / (self.last - self.first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def picture(self, title: str, bottom: float, parts: Iterable[str]) -> str:
        """Return the picture: round times, each a line from the top to the bottom, and before them the parts."""
        drawn: list[str] = []
        for time, words in time_ticks(self.first, self.last, about=8):
            x = self.x(time)
            drawn.append(path("M", x, TOP, "V", bottom, stroke="currentColor", opacity=".12"))
            drawn.append(text(x, bottom + 16, words, "middle"))
        return frame(title, [*drawn, *parts], WIDTH, bottom + BOTTOM)

    def stream_time(self, time: int, bottom: float) -> Iterator[str]:
        """Draw the line up to which event time has come."""
        x = self.x(time)
        side = -1 if x > WIDTH * 0.75 else 1
        yield path("M", x, TOP - 12, "V", bottom, stroke=COLOURS[1], stroke_width=2)
        words, anchor = f"stream time {time_beside(time, self.first)}", "end" if side < 0 else "start"
        yield words_at(x + 6 * side, TOP - 6, words, anchor, font_weight="600")

    def closed(self, until: int, bottom: float) -> Iterator[str]:
        """Shade the time that is over: windows that end there are closed."""
        width = self.x(until) - LEFT
        if until > self.first:
            yield rect(LEFT, TOP, width, bottom - TOP, opacity=".07")
            yield text(LEFT + 4, TOP + 11, "closed", "start") if width > 50 else ""

    def window(self, window: Windowed, y: float, height: float, state: str, words: str, narrow: float = NARROW) -> str:
        """Draw a window as a bar, with words in it if it is wider than a narrow one."""
        x, width = self.x(window.start), max(3.0, self.x(window.end) - self.x(window.start))
        inside = text(x + width / 2, y + height - 2.5, words, "middle") if width > narrow else ""
        return rect(x, y, width, height, rx=2, **WINDOW_LOOKS[state]) + inside


def lane(y: float, name: str) -> str:
    """Draw the line on which the records of a key or a stream stand, with its name."""
    line = path("M", LEFT, y, "H", WIDTH - RIGHT, stroke="currentColor", opacity=".3")
    return text(LEFT - 10, y + 4, shortened(name, 16), "end") + line


def mark(x: float, y: float, tooltip: str, shape: str, ring: str = "") -> str:
    """Draw a record; `ring` is the colour of the ring around it, if it has one."""
    around = element("circle", r=9, fill="none", stroke=ring, stroke_width=2) if ring else ""
    return group(tooltip, around, shape, transform=at(x, y))


def dot(colour: str = "currentColor") -> str:
    """Return the shape of a record."""
    return element("circle", r=4.5, fill=colour)


def cross(colour: str = RED) -> str:
    """Return the shape of a record that was dropped."""
    return path("M-5-5L5 5M5-5L-5 5", stroke=colour, stroke_width=2.5, fill="none")


def stacked(windows: Sequence[Windowed], shortest: float = 1) -> list[int]:
    """Return for each window the lowest row in which it overlaps none before it.

    Args:
        windows: sorted by their start.
        shortest: the room in time that a window without length takes, in milliseconds.
    """
    ends: list[float] = []
    rows = []
    for window in windows:
        row = next((row for row, end in enumerate(ends) if end <= window.start), len(ends))
        ends[row : row + 1] = [max(window.end, window.start + shortest)]
        rows.append(row)
    return rows
