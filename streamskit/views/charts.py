"""Small charts as SVG: points in, text out. They take the text colour of the page, light or dark."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape

from streamskit.common import svg

Points = Sequence[tuple[int, float]]

WIDTH, HEIGHT = 760, 190
LEFT, RIGHT, TOP, BOTTOM = 64, 110, 24, 22

INK = "#1f2937"
"""The colour of lines and words on light paper."""

COLOURS = ("#2f7de1", "#d9730d", "#1a9b6c", "#b252d6", "#8a8f00")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2")
MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-4-4H4V4H-4z",
    "M0-5L5 4H-5z",
    "M0-5L5 0 0 5-5 0z",
    "M-5-1h4v-4h2v4h4v2h-4v4h-2v-4h-4z",
)
"""Each line has its own colour, dashes and mark, so that colour is never needed to tell them apart."""

SMALLEST, LARGEST = 1e-300, 1e300
"""The smallest step of an axis, and the largest number that is drawn: beyond them floats cannot be reckoned with."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500]
TIME_STEPS += [times * SECOND for times in (1, 2, 5, 10, 15, 30)]
TIME_STEPS += [times * MINUTE for times in (1, 2, 5, 10, 15, 30)]
TIME_STEPS += [times * HOUR for times in (1, 2, 6, 12, 24, 48, 168)]


def line_chart(title: str, lines: Mapping[str, Points]) -> str:
    """Draw values over time: one line for each name, at most five; a point is (milliseconds, value)."""
    drawn = {name: [(x, y) for x, y in points if abs(y) <= LARGEST] for name, points in lines.items()}
    drawn = {name: points for name, points in drawn.items() if points}
    if not drawn:
        return empty(title, "No numbers to draw.", HEIGHT)
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    first, last = min(xs), max(xs)
    steps = ticks(min(ys), max(ys))
    low, high = min(steps[0], min(ys)), max(steps[-1], max(ys))

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = LEFT + (point[0] - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - (point[1] - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    placed = {name: [place(point) for point in points] for name, points in drawn.items()}
    rows = [(place((first, step))[1], spelled(step, decimals(steps))) for step in steps]
    return frame(title, [*_grid(rows), *_times(first, last), *_lines(placed)])


def bar_chart(title: str, bars: Sequence[tuple[str, float]]) -> str:
    """Draw named values as horizontal bars, from the first down."""
    bars = [(name, value) for name, value in bars if abs(value) <= LARGEST]
    if not bars:
        return empty(title, "No numbers to draw.", HEIGHT)
    places = decimals(value for _, value in bars)
    low, high = min(0.0, *(value for _, value in bars)), max(0.0, *(value for _, value in bars))
    scale = (WIDTH - LEFT - 2 * RIGHT) / ((high - low) or 1)
    zero = LEFT + RIGHT - low * scale
    pitch = (HEIGHT - TOP - 6) / max(10, len(bars))
    parts: list[str] = []
    for row, (name, value) in enumerate(bars):
        y, end = TOP + row * pitch, zero + value * scale
        parts += [
            svg.rect(min(zero, end), y + 2, abs(end - zero), pitch - 4, fill=COLOURS[0]),
            text(LEFT + RIGHT - 8, y + pitch / 2 + 4, shortened(name, 24), "end"),
            text(max(zero, end) + 6, y + pitch / 2 + 4, spelled(value, places)),
        ]
    return frame(title, parts)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that span a range: 1, 2 or 5 times a power of ten apart."""
    if high <= low:
        low, high = low - (abs(low) or 1) * 0.05, high + (abs(high) or 1) * 0.05
    rough = max((high - low) / about, SMALLEST)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    start = math.floor(low / step)
    return [round((start + count) * step, 12) for count in range(math.ceil(high / step - 1e-9) - start + 1)]


def spelled(value: float, decimals: int) -> str:
    """Write a number with thousands apart; a huge or a tiny one with its power of ten."""
    if value != 0 and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.4g}"
    return f"{value:,.{decimals}f}"


def decimals(values: Iterable[float]) -> int:
    """Return how many decimals the numbers of one column or axis need: as many as they have, but at most four."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    most = 4 if max(finite, default=0) < 1000 else 2
    return next((count for count in range(most) if all(abs(v - round(v, count)) < 1e-9 for v in finite)), most)


def counted(number: int, thing: str, things: str = "") -> str:
    """Write a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def shortened(text: str, longest: int) -> str:
    """Return the text, or its beginning with an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _lines(placed: Mapping[str, Sequence[tuple[float, float]]]) -> Iterator[str]:
    labels = _apart({name: points[-1][1] for name, points in placed.items()}, 13)
    for index, (name, points) in enumerate(placed.items()):
        colour, dash, mark = (looks[index % len(looks)] for looks in (COLOURS, DASHES, MARKS))
        dashes = {"stroke_dasharray": dash} if dash else {}
        corners = " ".join(f"{svg.number(x)},{svg.number(y)}" for x, y in points)
        yield svg.element("polyline", points=corners, fill="none", stroke=colour, stroke_width=1.8, **dashes)
        for x, y in (points[-1], (WIDTH - RIGHT + 16, labels[name])):
            yield svg.path(mark, transform=svg.at(x, y), fill=colour)
        yield text(WIDTH - RIGHT + 26, labels[name] + 4, shortened(name, 12))


def _apart(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Move labels down where they would overlap, then move all of them up if the last is beyond the edge."""
    moved: dict[str, float] = {}
    at = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        at = max(height, at + gap)
        moved[name] = at
    over = max(0.0, at - (HEIGHT - 8))
    return {name: height - over for name, height in moved.items()}


def _grid(rows: Sequence[tuple[float, str]]) -> Iterator[str]:
    for y, label in rows:
        yield svg.path("M", LEFT, y, "H", WIDTH - RIGHT, stroke="currentColor", opacity=".15")
        yield text(LEFT - 8, y + 4, label, "end")


def _times(first: int, last: int) -> Iterator[str]:
    for time, label in time_ticks(first, last):
        x = LEFT + (time - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)
        yield text(x, HEIGHT - 6, label, "middle")


def time_ticks(first: int, last: int, about: int = 6) -> list[tuple[int, str]]:
    """Return round times of a span, in milliseconds since 1970, and how they are written, in UTC."""
    form = "%Y-%m-%d" if last - first > 300 * DAY else "%m-%d %H:%M" if last - first > DAY else "%H:%M:%S"
    times = round_times(first, last, about)

    def written(at: datetime) -> str:
        return at.strftime(form) + (f".{at.microsecond // 1000:03d}" if times.step < SECOND else "")

    return [(time, dated(time, written)) for time in times]


def dated(milliseconds: int, written: Callable[[datetime], str]) -> str:
    """Write a time since 1970 in UTC, or as its number where no calendar has it: one in microseconds, for example.

    >>> dated(0, datetime.isoformat), dated(1_700_000_000_000_000, datetime.isoformat)
    ('1970-01-01T00:00:00+00:00', '1,700,000,000,000,000 ms')
    """
    try:
        return written(EPOCH + timedelta(milliseconds=int(milliseconds)))
    except (ValueError, OverflowError):
        return f"{milliseconds:,} ms"


def round_times(first: int, last: int, most: int) -> range:
    """Return the round times of a span, about so many at most; all in milliseconds since 1970."""
    span = last - first
    step = next((step for step in TIME_STEPS if span <= most * step), -(-span // (most * DAY)) * DAY)
    return range(-(-first // step) * step, last + 1, step)


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Write words at a point, which is where they start, their middle or their end."""
    return svg.text(x, y, words, anchor, opacity=".8")


def frame(title: str, parts: Iterable[str], width: float = WIDTH, height: float = HEIGHT) -> str:
    """Put the parts of a chart into an SVG of the given size in pixels, with a title."""
    words = escape(title)
    head = [svg.element("title", words), svg.element("text", words, x=0, y=13, font_weight="600")]
    look = {"style": "max-width:100%;height:auto", "fill": "currentColor", "font_family": "system-ui,sans-serif"}
    return svg.document(width, height, [*head, *parts], font_size=11, **look)


def empty(title: str, sentence: str, height: float = 90) -> str:
    """Return an empty chart with a sentence that says why it is empty."""
    return frame(title, [text(WIDTH / 2, (TOP + height) / 2, sentence, "middle")], WIDTH, height)
