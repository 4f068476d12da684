"""Pictures of records in time, drawn from a topology's input and output: windows, joins, stream time, tables."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from streamskit.api.windows import JoinWindows, TimeWindows, Windowed
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.views.charts import COLOURS, INK
from streamskit.views.event_time_axis import stacked
from streamskit.views.timed_records import (
    TimedRecord,
    check_known,
    height_of,
    keyed,
    records_of_pairs,
    timed,
    which_dropped,
    window_of,
)
from streamskit.views.timeline_parts import (
    FAINT,
    LATE,
    Label,
    axes_of_time,
    draw_bar,
    draw_legend,
    draw_pair,
    draw_points,
    draw_rows,
    draw_rules,
    end_by,
    ends_of,
    finished,
    key_text,
    pair_of,
    span_of,
    subplots,
    write_beside,
    written,
    written_times,
)
from streamskit.views.timeline_words import (
    arrivals_in_words,
    clock_for,
    pairs_in_words,
    rows_in_words,
    windows_in_words,
)

if TYPE_CHECKING:  # matplotlib is imported when a picture is drawn
    from matplotlib.figure import Figure

MARKS = "osD^v"

NAMED, NUMBERED = 100, 40
"""How many records or windows have a text beside them at most, and how many a number: more would hide each other."""


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
    windows = [key for key, _, _ in read if isinstance(key, Windowed)]
    taken = {"key", "time", *(["start", "end"] if windows else [])}
    taken |= {"value"} if has_others else set()
    columns = {name: f"value.{name}" if name in taken else name for name in fields}
    start, end = clock_for(each.start for each in windows), clock_for(each.end for each in windows)
    clock = clock_for(timestamp for _, _, timestamp in read)
    rows = []
    for key, value, timestamp in read:
        windowed = isinstance(key, Windowed)
        row = {"key": key.key, "start": start(key.start), "end": end(key.end)} if windowed else {"key": key}
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

    Of more than a hundred records or windows there are only the marks, without texts.

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
    first, last = span_of([*(r.timestamp for r in came), *(t for key in windows for t in (key.start, key.end))])
    lanes: dict[float, str] = {}
    height = 0.0
    figure, axes = axes_of_time(first, last)
    is_dropped = which_dropped(came, lost)
    # An aggregation by another key than the records' has windows of keys that no record has.
    for number, key in enumerate(dict.fromkeys([*(each.key for each in came), *(window.key for window in windows)])):
        lanes[height] = key_text(key)
        own = sorted(window for window in windows if window.key == key)
        rows = stacked(own, (last - first) / 200)
        for window, row in zip(own, rows, strict=True):
            text = written(windows[window], label) if len(windows) <= NAMED else ""
            draw_bar(axes, window, height + 1 + row, (last - first) / 150, COLOURS[number % len(COLOURS)], text)
        top = height + 1 + max(rows, default=-1)
        own_records = [(record, is_late) for record, is_late in zip(came, is_dropped, strict=True) if record.key == key]
        kept = [record.timestamp for record, is_late in own_records if not is_late]
        late = [record.timestamp for record in lost if record.key == key]
        axes.vlines(kept, height, top + 0.4, colors=FAINT, linestyles=":", linewidth=0.9, zorder=1)
        axes.plot(kept, [height] * len(kept), "o", color=INK, markersize=6)
        axes.plot(late, [height] * len(late), "x", color=LATE, markersize=8, markeredgewidth=2)
        for record, _ in own_records if record_label and len(came) <= NAMED else ():
            text = written(record.value, record_label)
            write_beside(axes, text, (record.timestamp, height), (7, 0), ha="left", va="center")
        height = top + 1.2
    if lost:
        axes.plot([], [], "x", color=LATE, markersize=8, markeredgewidth=2, label="too late, dropped")
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1))
    axes.set_yticks(list(lanes), list(lanes.values()))
    axes.set_ylim(-0.5, max(height, 1) - 0.5)
    figure.set_figheight(0.9 + 0.36 * max(height, 1))
    figure.set_label(
        windows_in_words(windows, lost, lambda value: written(value, label), lambda value: written(value, record_label))
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

    More than a hundred records of a side have no texts.

    Args:
        left: the left records, each (key, value, timestamp).
        right: the right records.
        pairs: the labels of the joined records, left and right, with None where a side is missing. Of records with
            the same label, those are taken that could meet, in the order they came.
        names: what the sides are called.
        windows: the window of the join, drawn above each left record.
        label: returns the text beside a record, given its value; pairs refer to it; the value itself if not given.
        rows: whether the right records are rows of a table, each drawn as a bar until the next update of its key.

    Raises:
        ValueError: a pair names a record that is not there, or something is no pair or no record.
    """
    sides = [[keyed(record) for record in side] for side in (left, right)]
    pairs = list(map(pair_of, pairs))
    labels = [[written(each.value, label) for each in side] for side in sides]
    for number, name in enumerate(names):
        check_known([pair[number] for pair in pairs], labels[number], name)
    spans = []
    if windows:
        before, after = windows.before_ms, windows.after_ms
        spans = [(time - before, time, time + after) for _, _, time in sides[0]]
    times = [record.timestamp for side in sides for record in side]
    figure, axes = axes_of_time(*span_of([*times, *(time for span in spans for time in span)]))
    keys = list(dict.fromkeys(record.key for side in sides for record in side))
    for side, height, above in ((0, 1.0, 1), (1, 0.0, -1)):
        for record, text in zip(sides[side], labels[side], strict=True):
            number = keys.index(record.key)
            colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
            axes.plot(record.timestamp, height, mark, color=colour, markersize=9, zorder=3)
            if len(sides[side]) <= NAMED:
                va = "bottom" if above > 0 else "top"
                write_beside(axes, text, (record.timestamp, height), (0, 10 * above), ha="center", va=va)
    if rows:
        draw_rows(axes, sides[1], keys)
    for number, span in enumerate(spans):
        colour = COLOURS[keys.index(sides[0][number].key) % len(COLOURS)]
        axes.plot(span, [1.35 + number % 4 * 0.1] * 3, "|-", color=colour, linewidth=1.4, markersize=7)
    for one, two in records_of_pairs(pairs, sides, labels, windows, rows):
        draw_pair(axes, one, two, rows)
    for number, key in enumerate(keys):
        axes.plot([], [], MARKS[number % len(MARKS)], color=COLOURS[number % len(COLOURS)], label=key_text(key))
    draw_legend(axes, "key")
    axes.set_yticks([0, 1], [key_text(names[1]), key_text(names[0])])
    axes.set_ylim(-0.4, 1.3 + 0.1 * min(len(spans), 4))
    figure.set_figheight(2.8)
    figure.set_label(pairs_in_words(pairs, names))
    return finished(figure)


def stream_time(
    records: Sequence[Any], dropped: Iterable[Any] = (), windows: TimeWindows | None = None, label: Label | None = None
) -> "Figure":
    """Draw records in the order they came, at the height of their own time, and how stream time moves with them.

    More than a hundred records have no texts. Of equal records, those that came last are the dropped ones.

    Args:
        records: each (key, value, timestamp), in the order they came.
        dropped: those of them that came too late.
        windows: the windows whose ends to draw, with the time up to which they are closed.
        label: returns the text beside a record, given its value; the key is shown if not given.

    Raises:
        ValueError: the windows have no fixed ends, as sessions and sliding windows.
    """
    if windows is not None and not isinstance(windows, TimeWindows):
        raise ValueError(f"stream_time draws the ends of TimeWindows, and {windows} has no fixed ends: leave it out.")
    came, lost = [keyed(record) for record in records], [keyed(record) for record in dropped]
    times = [record.timestamp for record in came]
    now = [max(times[: number + 1]) for number in range(len(times))]
    places = list(range(1, len(times) + 1))
    figure, axes = subplots(4)
    axes.step(places, now, where="post", color=COLOURS[0], linewidth=2, label="stream time")
    ends = range(0)
    if windows and times:
        ends = ends_of(windows, min(times), max(times))
        draw_rules(axes, ends, len(times), label="windows' ends")
        lowest = max(0, end_by(windows, min(times)))
        over = [end_by(windows, time - windows.grace) for time in now]
        closed = [end if end >= ends[0] else lowest for end in over]
        axes.fill_between(places, min(lowest, min(times)), closed, step="post", color=FAINT, alpha=0.25,
                          linewidth=0, label="closed")  # fmt: skip
    placed = list(zip(places, came, which_dropped(came, lost), strict=True))
    kept, late = ([(place, each) for place, each, is_late in placed if is_late is wanted] for wanted in (False, True))
    draw_points(axes, kept, "o", color=INK, markersize=7, label="record")
    if late:
        draw_points(axes, late, "x", color=LATE, markersize=9, markeredgewidth=2.2, label="too late, dropped")

    def text(record: TimedRecord) -> str:
        return str(record.key) if label is None else label(record.value)

    for place, record in [*kept, *late] if len(came) <= NAMED else ():
        write_beside(axes, text(record), (place, record.timestamp), (8, -2), ha="left", va="top")
    axes.set_yticks(*written_times(*span_of([*times, *ends[:1], *ends[-1:]])))
    if len(places) <= NUMBERED:
        axes.set_xticks(places)
    axes.set(xlabel="the records, in the order they came", ylabel="event time", xlim=(0.5, len(times) + 0.8))
    draw_legend(axes)
    axes.spines[["top", "right"]].set_visible(False)
    figure.set_label(arrivals_in_words([(each, is_late) for _, each, is_late in placed], text))
    return finished(figure)


def punctuation_timeline(
    records: Sequence[Any], calls: Iterable[tuple[int, int]], interval: Duration, label: Label | None = None
) -> "Figure":
    """Draw records in the order they came, and the punctuations by stream time that happened after them.

    Args:
        records: each (key, value, timestamp), in the order they came.
        calls: for each punctuation, how many records came before it, and the time that was passed to it.
        interval: how often it is due, a duration; at most one punctuation falls between two multiples.
        label: returns the text beside a record, given its value; the key is shown if not given.

    Raises:
        ValueError: the interval is no duration of at least a millisecond.
    """
    step = to_milliseconds(interval, "interval")
    if step < 1:
        raise ValueError(f"interval={interval!r} is no interval of punctuations: give at least a millisecond.")
    figure = stream_time(records, label=label)
    (axes,) = figure.axes
    times = [keyed(record).timestamp for record in records]
    if times:
        multiples = range(min(times) // step * step, max(times) + step + 1, step)
        draw_rules(axes, multiples, len(times), zorder=0, label="due from here on")
        axes.set_ylim(multiples[0] - step / 3, multiples[-1])
        axes.set_yticks(*written_times(multiples[0], multiples[-1]))
    calls = list(calls)
    clock = clock_for([*times, *(time for _, time in calls)])
    for number, (place, time) in enumerate(calls):
        axes.plot([place], [time], "*", color=LATE, markersize=17, zorder=4, label="" if number else "punctuation")
    draw_legend(axes)
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
    first, last = span_of(times)
    drawn = [[height_of(each, value) for each in own] for own in rows.values()]
    figure, axes = axes_of_time(first, last)
    for number, ((key, own), heights) in enumerate(zip(rows.items(), drawn, strict=True)):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        axes.step([*(each.timestamp for each in own), last], [*heights, heights[-1]], where="post", color=colour)
        axes.plot([each.timestamp for each in own], heights, mark, color=colour, markersize=7, label=key_text(key))
        # A deleted row has no height any more: the cross is where the row was.
        gone = [(each.timestamp, heights[place - 1]) for place, each in enumerate(own) if each.value is None and place]
        axes.plot([time for time, _ in gone], [y for _, y in gone], "x", color=LATE, markersize=10, markeredgewidth=2)
    draw_legend(axes)
    if not any(height < 0 for heights in drawn for height in heights):
        axes.set_ylim(bottom=0)
    figure.set_figheight(3)
    figure.set_label(rows_in_words(rows, lambda each: f"{height_of(each, value):g}"))
    return finished(figure)
