"""Windows in event time as HTML: which are open, which records fell into them, and which came too late."""

from collections.abc import Iterator, Sequence
from html import escape

from streamskit.api.windows import AnyWindows, SessionWindows, SlidingWindows
from streamskit.common.durations import spell
from streamskit.views.live import timeline
from streamskit.views.live.chart import counted, frame, shortened, text
from streamskit.views.live.html import (
    Column,
    Line,
    cell,
    grid,
    headline,
    moment,
    picture,
    saved,
    text_cell,
    time_of_day,
)
from streamskit.views.live.replay import Step, Window, closed_until, state_of, windows_after
from streamskit.views.live.timeline import TOP, Axis
from streamskit.views.live.window_snapshot import Seen, WindowSnapshot

LANES, ROWS, DROPPED = 6, 10, 8
"""How many keys are drawn at most, how many rows of windows for each, and how many dropped records are listed."""

ROW, RECORDS, GAP = 15, 20, 8
"""Heights in pixels: of a row of windows, of the line of records beneath, of the gap to the next key."""

LEGEND = (
    "Windows: solid is open, dashed has ended and still takes late records (grace), grey is closed. "
    "Records: ● in its windows, ◆ too late for some of them, ✕ dropped; the last one has a ring."
)

Lanes = dict[str, tuple[dict[Window, int], int]]
"""For each key the rows of its windows, and the height of its lane in pixels."""

COLUMNS = (
    Column("record", 68),
    Column("key", 115, left=True),
    Column("its time", 105),
    Column("stream time", 110),
    Column("why it was dropped", 520, left=True),
)


def render_windows(snapshot: WindowSnapshot) -> str:
    """Return a page of its own for a saved notebook."""
    return saved(header(snapshot, "saved") + picture(chart(snapshot)) + story(snapshot), "windows")


def header(snapshot: WindowSnapshot, state: str, trouble: str = "") -> str:
    """Return the lines that say which windows these are, and of which records."""
    said = [in_words(snapshot.windows), *where(snapshot.seen)]
    said += [f"as of {moment(int(snapshot.taken_at))} UTC"] if state == "saved" else []
    return headline(snapshot.name, state, said, trouble or snapshot.stopped)


def where(seen: Seen) -> Iterator[str]:
    """Say where the records come from, and which of them these are."""
    yield f"records of {', '.join(seen.topics)}" + (f", partition {seen.partition}" if len(seen.partitions) > 1 else "")
    if seen.before:
        yield f"the last {len(seen.arrivals):,}; {seen.before:,} came before them"


def in_words(windows: AnyWindows) -> str:
    """Return what a learner calls these windows."""
    grace = f"grace {spell(windows.grace)}" if windows.grace else "no grace"
    if isinstance(windows, SessionWindows):
        return f"sessions with a gap of {spell(windows.gap)}, {grace}"
    if isinstance(windows, SlidingWindows):
        return f"sliding windows of {spell(windows.time_difference)}, {grace}"
    if windows.advance == windows.size:
        return f"tumbling windows of {spell(windows.size)}, {grace}"
    return f"hopping windows of {spell(windows.size)} every {spell(windows.advance)}, {grace}"


def chart(snapshot: WindowSnapshot) -> str:
    """Draw records and windows, a lane for each key, and how far stream time has come."""
    keys, title = snapshot.keys[:LANES], f"Windows of {snapshot.name} in event time (UTC)"
    if not snapshot.steps or not keys:
        return frame(title, [text(380, 60, _nothing(snapshot), "middle")], 760, 90)
    every = [window for step in snapshot.steps for window in step.windows]
    axis = Axis.of([s.arrival.timestamp for s in snapshot.steps] + [t for w in every for t in (w.start, w.end)])
    lanes = _lanes(keys, every)
    bottom = TOP + sum(height for _, height in lanes.values())
    drawn: list[str] = [*axis.times(bottom)]
    now = snapshot.done[-1].stream_time if snapshot.done else -1
    if now >= 0:
        drawn += [*axis.closed(closed_until(snapshot.windows, now), bottom)]
        drawn += [*_windows(snapshot, axis, lanes, now), *axis.stream_time(now, bottom)]
    y = float(TOP)
    for key, (_, height) in lanes.items():
        y += height
        drawn.append(text(timeline.LEFT - 10, y - GAP - 6, shortened(key, 15), "end"))
        drawn.append(f'<path d="M{timeline.LEFT} {y - GAP - 10}H{timeline.WIDTH - timeline.RIGHT}" '
                     'stroke="currentColor" opacity=".3"/>')  # fmt: skip
        drawn += _records(snapshot, axis, key, y - GAP - 10)
    return frame(title, drawn, timeline.WIDTH, bottom + timeline.BOTTOM)


def story(snapshot: WindowSnapshot) -> str:
    """Return in words what the last record did, and what was dropped and why."""
    told = f'<div aria-live="polite">{escape(last_step(snapshot.done, len(snapshot.steps)))}</div>'
    more = len(snapshot.keys) - LANES
    hidden = f" {more} more keys are not drawn: search for one." if more > 0 else ""
    notes = f'<div class="sk-quiet">{escape(LEGEND + hidden)}</div>'
    notes += f'<div class="sk-quiet">{escape(snapshot.seen.caveat)}</div>' if snapshot.seen.caveat else ""
    return told + notes + dropped(snapshot.done, snapshot.seen)


def last_step(done: Sequence[Step], count: int) -> str:
    """Return a sentence on the last record that came, of so many."""
    if not done:
        return f"None of {counted(count, 'record')} has come yet." if count else ""
    step = done[-1]
    arrival, now = step.arrival, time_of_day(step.stream_time)
    if step.stream_time < 0:
        moved = "stream time has not begun"
    elif step.stream_time_before < 0:
        moved = f"stream time begins at {now}"
    elif step.stream_time_before == step.stream_time:
        moved = f"stream time stays at {now}"
    else:
        moved = f"stream time moves from {time_of_day(step.stream_time_before)} to {now}"
    fate = f"It is {step.why}." if step.why.startswith("too late") else f"It is left out: {step.why}."
    held = sum(count is not None for count in step.windows.values())
    did = fate if step.why else f"It changes {counted(held, 'window')}." if held else ""
    return f"Record {len(done)} of {count}: {arrival.key} at {time_of_day(arrival.timestamp)}; {moved}. {did}"


def dropped(done: Sequence[Step], seen: Seen) -> str:
    """Return a table of the records that were dropped, the last one first."""
    lost = [(number, step) for number, step in enumerate(done, 1) if step.is_dropped]
    title = f"Dropped: {counted(len(lost), 'record')} of {len(done):,}, by Kafka Streams' rule"
    counts = ", ".join(f"{count:,} at {node}" for node, count in seen.dropped.items())
    title += f"; what runs has counted {counts or 'none'}" if lost or counts else ""
    lines = [Line(_cells(number, step), "✕", "dropped", "sk-bad") for number, step in lost[: -DROPPED - 1 : -1]]
    return f'<div class="sk-quiet">{escape(title)}.</div>' + (grid(COLUMNS, lines, "dropped") if lost else "")


def fate(step: Step) -> str:
    """Return what became of a record: "kept", "late" (for some of its windows) or "dropped"."""
    return "dropped" if step.is_dropped else "late" if step.missed else "kept"


def told(number: int, step: Step) -> str:
    """Return what can be read by pointing at a record."""
    arrival = step.arrival
    value = "null" if arrival.value is None else shortened(arrival.value, 60)
    return f"record {number}: {arrival.key} = {value} at {time_of_day(arrival.timestamp)}" + (
        f"; {step.why}" if step.why else ""
    )


def _cells(number: int, step: Step) -> list[str]:
    key = "null" if step.arrival.key is None else step.arrival.key
    stream_time = "none yet" if step.stream_time < 0 else time_of_day(step.stream_time)
    times = (cell(time_of_day(step.arrival.timestamp)), cell(stream_time))
    return [cell(str(number)), text_cell(key), *times, cell(step.why, step.why, left=True)]


def _lanes(keys: Sequence[str], every: Sequence[Window]) -> Lanes:
    """Return for each key the rows of its windows, as many as are drawn, and the height of its lane."""
    lanes = {}
    for key in keys:
        placed = timeline.rows([window for window in dict.fromkeys(every) if window.key == key])
        kept = {window: row for window, row in placed.items() if row < ROWS}
        lanes[key] = (kept, (1 + max(kept.values(), default=-1)) * ROW + RECORDS + GAP)
    return lanes


def _windows(snapshot: WindowSnapshot, axis: Axis, lanes: Lanes, now: int) -> Iterator[str]:
    y, present = float(TOP), windows_after(snapshot.done)
    for placed, height in lanes.values():
        y += height
        for window, row in placed.items():
            if window in present:
                top = y - GAP - RECORDS - (row + 1) * ROW
                yield timeline.bar(axis, window, top, present[window], state_of(window, snapshot.windows, now))


def _records(snapshot: WindowSnapshot, axis: Axis, key: str, y: float) -> Iterator[str]:
    for number, step in enumerate(snapshot.done, 1):
        if step.arrival.key == key:
            x, is_latest = axis.x(step.arrival.timestamp), number == snapshot.at
            yield timeline.record(x, y, told(number, step), fate(step), is_latest)


def _nothing(snapshot: WindowSnapshot) -> str:
    if snapshot.steps and snapshot.search:
        return f"No key that is searched for ({snapshot.search}) has come."
    return f"No record of {', '.join(snapshot.seen.topics)} has come since this view was made."
