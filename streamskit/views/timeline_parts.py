"""What the pictures of `timelines` are made of: figures, axes of time, and the marks and texts on them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from streamskit.api.windows import TimeWindows, Windowed
from streamskit.views.charts import COLOURS, INK, round_times, shortened
from streamskit.views.timed_records import Pair, TimedRecord
from streamskit.views.timeline_words import clock_for

if TYPE_CHECKING:  # matplotlib is imported when a picture is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Label = Callable[[Any], str]

LONGEST_KEY, MOST_KEYS = 24, 12
"""How many letters of a key stand beside a picture, and how many keys its legend has: more would leave it no room."""

FAINT, LATE = "#9ca3af", "#c62828"

RULES = 100
"""How many dotted lines are drawn across a picture at most."""

WIDEST = 90
"""How many letters the times beneath a picture have at most, blanks included: more would run into each other."""


def written(value: Any, label: Label | None) -> str:
    """Return the text of a value: what its label says, or the value itself."""
    if label is not None:
        return str(label(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def key_text(key: Any) -> str:
    """Return what stands beside a picture for a key or a side: one that is very long would leave it no room."""
    return shortened(str(key), LONGEST_KEY)


def pair_of(labels: Any) -> Pair:
    """Return what a pair calls its records, written as the records themselves are; None for a side that is missing.

    Raises:
        ValueError: it is no pair.
    """
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise ValueError(
            f"{shortened(repr(labels), 60)} is no pair of joined records: give the labels of the left and the right "
            "one, as in ('a1', 'b1'), with None where a side is missing."
        )
    left, right = (None if label is None else written(label, None) for label in labels)
    return left, right


def span_of(times: Iterable[int]) -> tuple[int, int]:
    """Return the first and the last of some times; there are at least two milliseconds between them."""
    known = [*times] or [0]
    return min(known), max(max(known), min(known) + 2)


def written_times(first: int, last: int, most: int = 10) -> tuple[list[int], list[str]]:
    """Return the round times of a span, about so many at most, and how they are written."""
    times = round_times(first, last, most)
    return list(times), [*map(clock_for(times), times)]


def times_side_by_side(first: int, last: int) -> tuple[list[int], list[str]]:
    """Return as many round times as have room beside each other: those with milliseconds are long."""
    for most in range(10, 0, -1):
        times, words = written_times(first, last, most)
        if sum(len(each) + 2 for each in words) <= WIDEST:
            break
    return times, words


def ends_of(windows: TimeWindows, first: int, last: int) -> range:
    """Return when windows end: from the last end before a time to the first after another; none starts before 0."""
    return range(
        max(windows.size, end_by(windows, first)), max(windows.size, last + windows.advance) + 1, windows.advance
    )


def end_by(windows: TimeWindows, time: int) -> int:
    """Return the last end that a window may have by a time."""
    return (time - windows.size) // windows.advance * windows.advance + windows.size


def draw_rules(axes: "Axes", heights: range, count: int, **look: Any) -> None:
    """Draw lines across a picture of so many records; of very many heights only some, evenly."""
    shown = heights[:: len(heights) // RULES + 1]
    axes.hlines(shown, 0.5, count + 0.8, colors=FAINT, linestyles=":", **look)


def axes_of_time(first: int, last: int) -> "tuple[Figure, Axes]":
    """Return a wide figure whose one axis is time."""
    figure, axes = subplots(3)
    margin = (last - first) * 0.03
    axes.set_xlim(first - margin, last + margin)
    axes.set_xticks(*times_side_by_side(first, last))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def draw_points(axes: "Axes", placed: Sequence[tuple[int, TimedRecord]], mark: str, **look: Any) -> None:
    """Draw records in the order they came, at the height of their own time."""
    axes.plot([place for place, _ in placed], [record.timestamp for _, record in placed], mark, **look)


def draw_bar(axes: "Axes", window: Windowed, row: float, shortest: float, colour: str, text: str) -> None:
    """Draw one window; a session of one record has no length, and gets a minimal one to be visible."""
    length = max(window.end - window.start, shortest)
    left = (window.start + window.end - length) / 2
    axes.barh(row, length, 0.74, left, color=colour, alpha=0.22, edgecolor="none", zorder=2)
    axes.barh(row, length, 0.74, left, fill=False, edgecolor=colour, linewidth=1.4, zorder=2)
    if text and length > 10 * shortest:
        write_beside(axes, text, (left + length / 2, row), (0, 0), ha="center", va="center")
    elif text:
        write_beside(axes, text, (left + length, row), (4, 0), ha="left", va="center")


def write_beside(axes: "Axes", text: str, place: tuple[float, float], offset: tuple[int, int], **aligned: Any) -> None:
    """Write beside a point, so that lines behind the text leave it readable; the offset in points."""
    from matplotlib.patheffects import withStroke

    note = axes.annotate(text, place, offset, textcoords="offset points", fontsize=9, color=INK, zorder=5, **aligned)
    note.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def draw_rows(axes: "Axes", updates: Sequence[TimedRecord], keys: Sequence[Any]) -> None:
    """Draw for each update of a table how long its row holds: until the next update of the key, or to the end."""
    end = axes.get_xlim()[1]
    for place, update in enumerate(updates):
        later = [each.timestamp for each in updates[place + 1 :] if each.key == update.key]
        if update.value is not None:
            span = [update.timestamp, later[0] if later else end]
            colour = COLOURS[keys.index(update.key) % len(COLOURS)]
            axes.plot(span, [0, 0], "-", color=colour, linewidth=9, alpha=0.25, solid_capstyle="butt", zorder=1)


def draw_pair(axes: "Axes", one: TimedRecord | None, two: TimedRecord | None, rows: bool) -> None:
    """Draw a line between two joined records, or a stub where one side is null; to a row it goes straight down."""
    if one is not None and two is not None:
        met = (one if rows else two).timestamp
        axes.plot([one.timestamp, met], [1, 0], color=INK, linewidth=1.3, zorder=2)
        return
    alone = one or two
    if alone is None:
        return
    place, start, end = (alone.timestamp, 1.0, 0.7) if alone is one else (alone.timestamp, 0.0, 0.3)
    axes.plot([place, place], [start, end], color=LATE, linewidth=1.3, linestyle=":", zorder=2)
    axes.text(place, end, "null", ha="center", va="top" if one is not None else "bottom", fontsize=9, color=LATE)


def draw_legend(axes: "Axes", title: str | None = None) -> None:
    """Say beside a picture what its marks are, if there are any."""
    from matplotlib.lines import Line2D

    marks, words = axes.get_legend_handles_labels()
    if len(words) > MOST_KEYS:
        words = [*words[:MOST_KEYS], f"… {len(words) - MOST_KEYS} more"]
        marks = [*marks[:MOST_KEYS], Line2D([], [], linestyle="none")]
    if marks:
        axes.legend(marks, words, title=title, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def subplots(height: float, panes: int = 1, width: float = 9, **options: Any) -> Any:
    """Return a figure of the given size in inches, and its axes."""
    import matplotlib.pyplot as plt

    return plt.subplots(1, panes, figsize=(width, height), layout="constrained", **options)


def finished(figure: "Figure") -> "Figure":
    """Return a figure that shows once, as the value of its cell: a notebook would draw an open one by itself again."""
    import matplotlib.pyplot as plt
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # two dollars in keys and values are no formula
    figure.set_facecolor("white")
    plt.close(figure)
    return figure
