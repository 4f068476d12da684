"""Pictures of records in time, drawn from a topology's input and output: windows, joins, stream time, tables."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from streamskit.api.windows import JoinWindows, TimeWindows, Windowed
from streamskit.views.charts import COLOURS, round_times
from streamskit.views.event_time_axis import stacked
from streamskit.views.timed_records import TimedRecord, check_known, height_of, keyed, timed, window_of
from streamskit.views.timeline_words import (
    arrivals_in_words,
    clock,
    pairs_in_words,
    rows_in_words,
    windows_in_words,
)

if TYPE_CHECKING:  # matplotlib is imported when a picture is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Label = Callable[[Any], str]

INK, FAINT, LATE = "#1f2937", "#9ca3af", "#c62828"
MARKS = "osD^v"

RULES = 100
"""How many dotted lines are drawn across a picture at most."""


def as_table(records: Iterable[Any]) -> pd.DataFrame:
    """Return records as a data frame to read: times as times of day, a windowed key as key, start and end.

    The fields of a value are columns of their own; one that has the name of another column is in `value.key` and so on.

    Args:
        records: from an output topic of a test driver, or `broker.consume(...).itertuples()`.

    >>> as_table(driver.create_output_topic("totals").read_records_to_list())  # doctest: +SKIP
    """
    read = [timed(record) for record in records]
    fields = list(dict.fromkeys(name for _, value, _ in read if isinstance(value, dict) for name in value))
    has_others = not fields or not all(isinstance(value, dict | None) for _, value, _ in read)
    taken = {"key", "time", *(["start", "end"] if any(isinstance(key, Windowed) for key, _, _ in read) else [])}
    taken |= {"value"} if has_others else set()
    columns = {name: f"value.{name}" if name in taken else name for name in fields}
    rows = []
    for key, value, timestamp in read:
        windowed = isinstance(key, Windowed)
        row = {"key": key.key, "start": clock(key.start), "end": clock(key.end)} if windowed else {"key": key}
        row |= {column: value.get(name) if isinstance(value, dict) else None for name, column in columns.items()}
        row |= {"value": None if fields and isinstance(value, dict) else value} if has_others else {}
        rows.append(row | {"time": clock(timestamp)})
    return pd.DataFrame(rows, dtype=object)


def windows_timeline(
    records: Iterable[Any],
    results: Iterable[Any],
    dropped: Iterable[Any] = (),
    label: Label | None = None,
    record_label: Label | None = None,
) -> "Figure":
    """Draw each key's records on a line of time, and above them the windows with what they came to.

    Args:
        records: what went in, each (key, value, timestamp).
        results: what came out, with windowed keys; the last update of a window counts, and None deletes it.
        dropped: the records that came too late.
        label: returns the text in a window, given its result.
        record_label: returns the text beside a record, given its value.

    Raises:
        ValueError: a result has no windowed key, or something is no record.
    """
    came, lost = [keyed(record) for record in records], [keyed(record) for record in dropped]
    windows = {window_of(key): value for key, value, _ in map(keyed, results)}
    windows = {key: value for key, value in windows.items() if value is not None}
    first, last = _span([*(r.timestamp for r in came), *(t for key in windows for t in (key.start, key.end))])
    lanes: dict[float, str] = {}
    height = 0.0
    figure, axes = _axes(first, last)
    for number, key in enumerate(dict.fromkeys(record.key for record in came)):
        lanes[height] = str(key)
        own = sorted(window for window in windows if window.key == key)
        rows = stacked(own, (last - first) / 200)
        for window, row in zip(own, rows, strict=True):
            text = _text(windows[window], label)
            _bar(axes, window, height + 1 + row, (last - first) / 150, COLOURS[number % len(COLOURS)], text)
        top = height + 1 + max(rows, default=-1)
        records = [record for record in came if record.key == key]
        kept = [record.timestamp for record in records if record not in lost]
        late = [record.timestamp for record in lost if record.key == key]
        axes.vlines(kept, height, top + 0.4, colors=FAINT, linestyles=":", linewidth=0.9, zorder=1)
        axes.plot(kept, [height] * len(kept), "o", color=INK, markersize=6)
        axes.plot(late, [height] * len(late), "x", color=LATE, markersize=8, markeredgewidth=2)
        for record in records if record_label else ():
            text = _text(record.value, record_label)
            _write(axes, text, (record.timestamp, height), (7, 0), ha="left", va="center")
        height = top + 1.2
    if lost:
        axes.plot([], [], "x", color=LATE, markersize=8, markeredgewidth=2, label="too late, dropped")
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1))
    axes.set_yticks(list(lanes), list(lanes.values()))
    axes.set_ylim(-0.5, max(height, 1) - 0.5)
    figure.set_figheight(0.9 + 0.36 * max(height, 1))
    figure.set_label(
        windows_in_words(windows, lost, lambda value: _text(value, label), lambda value: _text(value, record_label))
    )
    return finished(figure)


def join_timeline(
    left: Iterable[Any],
    right: Iterable[Any],
    pairs: Iterable[tuple[Any, Any]],
    names: tuple[str, str] = ("left", "right"),
    windows: JoinWindows | None = None,
    label: Label | None = None,
    rows: bool = False,
) -> "Figure":
    """Draw the records of two sides on two lines of time, and a line between any two that were joined.

    Args:
        left: the left records, each (key, value, timestamp).
        right: the right records.
        pairs: the labels of the joined records, left and right, with None where a side is missing.
        names: what the sides are called.
        windows: the window of the join, drawn above each left record.
        label: returns the text beside a record, given its value; pairs refer to it; the value itself if not given.
        rows: whether the right records are rows of a table, each drawn as a bar until the next update of its key.

    Raises:
        ValueError: a pair names a record that is not there, or something is no record.
    """
    sides = [[keyed(record) for record in side] for side in (left, right)]
    pairs = list(pairs)
    for number, name in enumerate(names):
        check_known([pair[number] for pair in pairs], [_text(each.value, label) for each in sides[number]], name)
    spans = []
    if windows:
        before, after = windows.before_ms, windows.after_ms
        spans = [(time - before, time, time + after) for _, _, time in sides[0]]
    times = [record.timestamp for side in sides for record in side]
    figure, axes = _axes(*_span([*times, *(time for span in spans for time in span)]))
    keys = list(dict.fromkeys(record.key for side in sides for record in side))
    places: list[dict[str, int]] = [{}, {}]
    for side, height, above in ((0, 1.0, 1), (1, 0.0, -1)):
        for record in sides[side]:
            text, number = _text(record.value, label), keys.index(record.key)
            places[side][text] = record.timestamp
            colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
            axes.plot(record.timestamp, height, mark, color=colour, markersize=9, zorder=3)
            va = "bottom" if above > 0 else "top"
            _write(axes, text, (record.timestamp, height), (0, 10 * above), ha="center", va=va)
    if rows:
        _rows(axes, sides[1], keys)
    for number, span in enumerate(spans):
        colour = COLOURS[keys.index(sides[0][number].key) % len(COLOURS)]
        axes.plot(span, [1.35 + number % 4 * 0.1] * 3, "|-", color=colour, linewidth=1.4, markersize=7)
    for one, two in pairs:
        _pair(axes, places, None if one is None else str(one), None if two is None else str(two), rows)
    for number, key in enumerate(keys):
        axes.plot([], [], MARKS[number % len(MARKS)], color=COLOURS[number % len(COLOURS)], label=str(key))
    _legend(axes, "key")
    axes.set_yticks([0, 1], [names[1], names[0]])
    axes.set_ylim(-0.4, 1.3 + 0.1 * min(len(spans), 4))
    figure.set_figheight(2.8)
    figure.set_label(pairs_in_words(pairs, names))
    return finished(figure)


def stream_time(
    records: Sequence[Any], dropped: Iterable[Any] = (), windows: TimeWindows | None = None, label: Label | None = None
) -> "Figure":
    """Draw records in the order they came, at the height of their own time, and how stream time moves with them.

    Args:
        records: each (key, value, timestamp), in the order they came.
        dropped: those of them that came too late.
        windows: the windows whose ends to draw, with the time up to which they are closed.
        label: returns the text beside a record, given its value; the key is shown if not given.
    """
    came, lost = [keyed(record) for record in records], [keyed(record) for record in dropped]
    times = [record.timestamp for record in came]
    now = [max(times[: number + 1]) for number in range(len(times))]
    places = list(range(1, len(times) + 1))
    figure, axes = subplots(4)
    axes.step(places, now, where="post", color=COLOURS[0], linewidth=2, label="stream time")
    ends = range(0)
    if windows and times:
        ends = _ends(windows, min(times), max(times))
        _rules(axes, ends, len(times), label="windows' ends")
        lowest = max(0, _end_by(windows, min(times)))
        over = [_end_by(windows, time - windows.grace) for time in now]
        closed = [end if end >= ends[0] else lowest for end in over]
        axes.fill_between(places, min(lowest, min(times)), closed, step="post", color=FAINT, alpha=0.25,
                          linewidth=0, label="closed")  # fmt: skip
    placed = list(zip(places, came, strict=True))
    kept, late = ([each for each in placed if (each[1] in lost) is is_late] for is_late in (False, True))
    _points(axes, kept, "o", color=INK, markersize=7, label="record")
    if late:
        _points(axes, late, "x", color=LATE, markersize=9, markeredgewidth=2.2, label="too late, dropped")

    def text(record: TimedRecord) -> str:
        return str(record.key) if label is None else label(record.value)

    for place, record in [*kept, *late]:
        _write(axes, text(record), (place, record.timestamp), (8, -2), ha="left", va="top")
    axes.set_yticks(*_ticks(*_span([*times, *ends[:1], *ends[-1:]])))
    axes.set_xticks(places)
    axes.set(xlabel="the records, in the order they came", ylabel="event time", xlim=(0.5, len(times) + 0.8))
    _legend(axes)
    axes.spines[["top", "right"]].set_visible(False)
    figure.set_label(arrivals_in_words(came, lost, text))
    return finished(figure)


def punctuation_timeline(
    records: Sequence[Any], calls: Iterable[tuple[int, int]], interval: int, label: Label | None = None
) -> "Figure":
    """Draw records in the order they came, and the punctuations by stream time that happened after them.

    Args:
        records: each (key, value, timestamp), in the order they came.
        calls: for each punctuation, how many records came before it, and the time that was passed to it.
        interval: how often it is due, in milliseconds; at most one punctuation falls between two multiples.
        label: returns the text beside a record, given its value; the key is shown if not given.

    Raises:
        ValueError: the interval is not at least a millisecond.
    """
    if interval < 1:
        raise ValueError(f"interval={interval!r} is no interval of punctuations: give milliseconds, 1 or more.")
    figure = stream_time(records, label=label)
    (axes,) = figure.axes
    times = [keyed(record).timestamp for record in records]
    if times:
        multiples = range(min(times) // interval * interval, max(times) + interval + 1, interval)
        _rules(axes, multiples, len(times), zorder=0, label="due from here on")
        axes.set_ylim(multiples[0] - interval / 3, multiples[-1])
        axes.set_yticks(*_ticks(multiples[0], multiples[-1]))
    calls = list(calls)
    for number, (place, time) in enumerate(calls):
        axes.plot([place], [time], "*", color=LATE, markersize=17, zorder=4, label="" if number else "punctuation")
    _legend(axes)
    said = "; ".join(f"at {clock(time)} after record {place}" for place, time in calls)
    figure.set_label(f"{figure.get_label()} Punctuations: {said or 'none'}.")
    return finished(figure)


def table_timeline(updates: Iterable[Any], value: Callable[[Any], float] | None = None) -> "Figure":
    """Draw the rows of a table over time: a step at each update of a key, and a cross where the row is deleted.

    Args:
        updates: what came out of the table, each (key, value, timestamp).
        value: returns a number for an update's value.

    Raises:
        ValueError: the value of an update is no number, or something is no record.
    """
    rows: dict[Any, list[TimedRecord]] = {}
    for update in map(keyed, updates):
        rows.setdefault(update.key, []).append(update)
    times = [update.timestamp for updates_ in rows.values() for update in updates_]
    first, last = _span(times)
    drawn = [[height_of(each, value) for each in own] for own in rows.values()]
    figure, axes = _axes(first, last)
    for number, ((key, own), heights) in enumerate(zip(rows.items(), drawn, strict=True)):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        axes.step([*(each.timestamp for each in own), last], [*heights, heights[-1]], where="post", color=colour)
        axes.plot([each.timestamp for each in own], heights, mark, color=colour, markersize=7, label=str(key))
        # A deleted row has no height any more: the cross is where the row was.
        gone = [(each.timestamp, heights[place - 1]) for place, each in enumerate(own) if each.value is None and place]
        axes.plot([time for time, _ in gone], [y for _, y in gone], "x", color=LATE, markersize=10, markeredgewidth=2)
    _legend(axes)
    axes.set_ylim(bottom=0)
    figure.set_figheight(3)
    figure.set_label(rows_in_words(rows, lambda each: f"{height_of(each, value):g}"))
    return finished(figure)


# ---- parts of pictures -----------------------------------------------------------------------------------------------


def _text(value: Any, label: Label | None) -> str:
    if label is not None:
        return label(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _span(times: Iterable[int]) -> tuple[int, int]:
    """Return the first and the last of some times; there are at least two milliseconds between them."""
    known = [*times] or [0]
    return min(known), max(max(known), min(known) + 2)


def _ticks(first: int, last: int) -> tuple[list[int], list[str]]:
    times = round_times(first, last, 10)
    return list(times), [clock(time) for time in times]


def _ends(windows: TimeWindows, first: int, last: int) -> range:
    """Return when windows end: from the last end before a time to the first after another; none starts before 0."""
    return range(
        max(windows.size, _end_by(windows, first)), max(windows.size, last + windows.advance) + 1, windows.advance
    )


def _end_by(windows: TimeWindows, time: int) -> int:
    """Return the last end that a window may have by a time."""
    return (time - windows.size) // windows.advance * windows.advance + windows.size


def _rules(axes: "Axes", heights: range, count: int, **look: Any) -> None:
    """Draw lines across a picture of so many records; of very many heights only some, evenly."""
    shown = heights[:: len(heights) // RULES + 1]
    axes.hlines(shown, 0.5, count + 0.8, colors=FAINT, linestyles=":", **look)


def _axes(first: int, last: int) -> "tuple[Figure, Axes]":
    """Return a wide figure whose one axis is time."""
    figure, axes = subplots(3)
    margin = (last - first) * 0.03
    axes.set_xlim(first - margin, last + margin)
    axes.set_xticks(*_ticks(first, last))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _points(axes: "Axes", placed: Sequence[tuple[int, TimedRecord]], mark: str, **look: Any) -> None:
    axes.plot([place for place, _ in placed], [record.timestamp for _, record in placed], mark, **look)


def _bar(axes: "Axes", window: Windowed, row: float, shortest: float, colour: str, text: str) -> None:
    """Draw one window; a session of one record has no length, and gets a minimal one to be visible."""
    length = max(window.end - window.start, shortest)
    left = (window.start + window.end - length) / 2
    axes.barh(row, length, 0.74, left, color=colour, alpha=0.22, edgecolor="none", zorder=2)
    axes.barh(row, length, 0.74, left, fill=False, edgecolor=colour, linewidth=1.4, zorder=2)
    if length > 10 * shortest:
        _write(axes, text, (left + length / 2, row), (0, 0), ha="center", va="center")
    else:
        _write(axes, text, (left + length, row), (4, 0), ha="left", va="center")


def _write(axes: "Axes", text: str, place: tuple[float, float], offset: tuple[int, int], **aligned: Any) -> None:
    """Write beside a point, so that lines behind the text leave it readable; the offset in points."""
    from matplotlib.patheffects import withStroke

    written = axes.annotate(text, place, offset, textcoords="offset points", fontsize=9, color=INK, zorder=5, **aligned)
    written.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _rows(axes: "Axes", updates: Sequence[TimedRecord], keys: Sequence[Any]) -> None:
    """Draw for each update of a table how long its row holds: until the next update of the key, or to the end."""
    end = axes.get_xlim()[1]
    for place, update in enumerate(updates):
        later = [each.timestamp for each in updates[place + 1 :] if each.key == update.key]
        if update.value is not None:
            span = [update.timestamp, later[0] if later else end]
            colour = COLOURS[keys.index(update.key) % len(COLOURS)]
            axes.plot(span, [0, 0], "-", color=colour, linewidth=9, alpha=0.25, solid_capstyle="butt", zorder=1)


def _pair(axes: "Axes", places: list[dict[str, int]], one: str | None, two: str | None, rows: bool) -> None:
    """Draw a line between two joined records, or a stub where one side is null; to a row it goes straight down."""
    if one is not None and two is not None:
        met = places[0][one] if rows else places[1][two]
        axes.plot([places[0][one], met], [1, 0], color=INK, linewidth=1.3, zorder=2)
        return
    place, start, end = (places[0][one], 1.0, 0.7) if one is not None else (places[1][str(two)], 0.0, 0.3)
    axes.plot([place, place], [start, end], color=LATE, linewidth=1.3, linestyle=":", zorder=2)
    axes.text(place, end, "null", ha="center", va="top" if one is not None else "bottom", fontsize=9, color=LATE)


def _legend(axes: "Axes", title: str | None = None) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(title=title, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


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
