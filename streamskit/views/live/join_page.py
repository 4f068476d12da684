"""A join of two streams in event time as HTML: two lanes of records, the window around each, and who met whom."""

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape

from streamskit.common.durations import spell
from streamskit.topology.drawing.labels import JOINS
from streamskit.views.live import timeline
from streamskit.views.live.chart import COLOURS, MARKS, counted, frame, shortened, text
from streamskit.views.live.html import headline, moment, picture, saved, time_of_day
from streamskit.views.live.join_snapshot import FATES, JoinSnapshot
from streamskit.views.live.timeline import RED, TOP, Axis
from streamskit.views.live.window_page import dropped, told, where

WINDOWS = 12
"""Of so many of the last records the windows are drawn."""

LEFT_LANE, RIGHT_LANE, PITCH = TOP + 78, TOP + 178, 5
"""Where the two lanes are, and how far apart the windows' lines, in pixels."""

BOTTOM = RIGHT_LANE + 78

LEGEND = (
    "A line joins two records that met. Records: filled have met another, ○ may still meet one, grey are unmatched and "
    "their time is over, ⊘ went out alone, ✕ dropped; the last one has a ring. The bracket at a record is the time in "
    "which a record of the other stream meets it. Records with the same mark have the same key."
)


def render_join(snapshot: JoinSnapshot) -> str:
    """Return a page of its own for a saved notebook."""
    return saved(header(snapshot, "saved") + picture(chart(snapshot)) + story(snapshot), "join")


def header(snapshot: JoinSnapshot, state: str, trouble: str = "") -> str:
    """Return the lines that say which join this is, and of which records."""
    said = [in_words(snapshot), *where(snapshot.seen)]
    said += [f"as of {moment(int(snapshot.taken_at))} UTC"] if state == "saved" else []
    return headline(snapshot.name, state, said, trouble or snapshot.stopped)


def in_words(snapshot: JoinSnapshot) -> str:
    """Return the join as a sentence: its kind, and how far apart two records may be."""
    windows = snapshot.windows
    if windows.before_ms == windows.after_ms:
        reach = f"at most {spell(windows.before_ms)} apart"
    else:
        reach = f"the right one from {spell(windows.before_ms)} before to {spell(windows.after_ms)} after the left one"
    grace = f"grace {spell(windows.grace)}" if windows.grace else "no grace"
    return f"{JOINS[snapshot.outer]} of {' and '.join(snapshot.names)}, {reach}, {grace}"


def chart(snapshot: JoinSnapshot) -> str:
    """Draw both streams, windows, and the pairs that met."""
    title = f"{JOINS[snapshot.outer].capitalize()} in event time (UTC)"
    if not snapshot.steps:
        nothing = f"No record of {' or '.join(snapshot.seen.topics)} has come since this view was made."
        return frame(title, [text(380, 60, nothing, "middle")], 760, 90)
    reach = max(snapshot.windows.before_ms, snapshot.windows.after_ms)
    times = [step.arrival.timestamp for step in snapshot.steps]
    axis = Axis.of([*times, *(max(0, time - reach) for time in times), *(time + reach for time in times)])
    drawn = [*axis.times(BOTTOM), *_lanes(snapshot)]
    if snapshot.done:
        drawn += [*_windows(snapshot, axis), *_pairs(snapshot, axis)]
        drawn += [*axis.stream_time(snapshot.done[-1].stream_time, BOTTOM), *_records(snapshot, axis)]
    return frame(title, drawn, timeline.WIDTH, BOTTOM + timeline.BOTTOM)


def story(snapshot: JoinSnapshot) -> str:
    """Return in words what the last record did, how many met, and what was dropped and why."""
    counts = Counter(snapshot.fates().values())
    met = sum(None not in pair for pair in snapshot.pairs)
    total = ", ".join(f"{counts[fate]} {fate}" for fate in FATES if counts[fate]) or "none yet"
    notes = [f"{counted(met, 'pair')} met; records: {total}.", LEGEND, snapshot.seen.caveat]
    return (
        f'<div aria-live="polite">{escape(last_step(snapshot))}</div>'
        + "".join(f'<div class="sk-quiet">{escape(note)}</div>' for note in notes if note)
        + dropped(snapshot.done, snapshot.seen)
    )


def last_step(snapshot: JoinSnapshot) -> str:
    """Return a sentence on the last record that came."""
    if not snapshot.done:
        return f"None of {counted(len(snapshot.steps), 'record')} has come yet." if snapshot.steps else ""
    step = snapshot.done[-1]
    arrival, sides = step.arrival, " and ".join(snapshot.names[side] for side in step.arrival.sides)
    met = sum(None not in pair for pair in step.pairs)
    alone = len(step.pairs) - met
    did = f"It meets {counted(met, 'record')}." if met else "It meets none."
    did += f" {counted(alone, 'record')} without a match went out alone." if alone else ""
    return (
        f"Record {snapshot.at} of {len(snapshot.steps)}: {arrival.key} of {sides} at {time_of_day(arrival.timestamp)}; "
        f"stream time is {time_of_day(step.stream_time)}. " + (f"It is dropped: {step.why}." if step.why else did)
    )


def _lanes(snapshot: JoinSnapshot) -> Iterator[str]:
    for name, y in zip(snapshot.names, (LEFT_LANE, RIGHT_LANE), strict=True):
        yield text(timeline.LEFT - 10, y + 4, shortened(name, 16), "end")
        end = timeline.WIDTH - timeline.RIGHT
        yield f'<path d="M{timeline.LEFT} {y}H{end}" stroke="currentColor" opacity=".3"/>'


def _windows(snapshot: JoinSnapshot, axis: Axis) -> Iterator[str]:
    """Draw the windows of the last records, those of the left ones above and those of the right ones beneath."""
    for back, step in enumerate(reversed(snapshot.done[-WINDOWS:])):
        for side in step.arrival.sides:
            before, after = snapshot.windows.before_ms, snapshot.windows.after_ms
            before, after = (after, before) if side else (before, after)
            away = 14 + back * PITCH
            y = RIGHT_LANE + away if side else LEFT_LANE - away
            time, width = step.arrival.timestamp, 2.4 if back == 0 else 1.0
            start, middle, end = axis.x(time - before), axis.x(time), axis.x(time + after)
            bracket = f"M{start:.1f} {y - 3}v6m0-3H{end:.1f}m0-3v6M{middle:.1f} {y - 3}v6"
            yield (
                f'<path d="{bracket}" stroke="{COLOURS[0]}" stroke-width="{width}" fill="none" '
                f'opacity="{1 if back == 0 else 0.5}"/>'
            )


def _pairs(snapshot: JoinSnapshot, axis: Axis) -> Iterator[str]:
    newest = set(snapshot.done[-1].pairs)
    for left, right in snapshot.pairs:
        if left is not None and right is not None:
            one, two = (axis.x(snapshot.steps[place].arrival.timestamp) for place in (left, right))
            look = f'stroke="{COLOURS[1]}" stroke-width="2.4"' if (left, right) in newest else 'stroke="currentColor"'
            yield f'<path d="M{one:.1f} {LEFT_LANE}L{two:.1f} {RIGHT_LANE}" {look} opacity=".75"/>'


def _records(snapshot: JoinSnapshot, axis: Axis) -> Iterator[str]:
    keys = list(dict.fromkeys(step.arrival.key for step in snapshot.steps))
    fates = snapshot.fates()
    for place, step in enumerate(snapshot.done):
        number = keys.index(step.arrival.key)
        mark, colour = MARKS[number % len(MARKS)], COLOURS[number % len(COLOURS)]
        for side in step.arrival.sides:
            fate = fates[side, place]
            x, y = axis.x(step.arrival.timestamp), RIGHT_LANE if side else LEFT_LANE
            ring = f'<circle r="10" fill="none" stroke="{COLOURS[1]}" stroke-width="2"/>'
            said = f"{told(place + 1, step)}; {fate}"
            yield (
                f'<g transform="translate({x:.1f} {y})"><title>{escape(said)}</title>'
                f"{ring if place == snapshot.at - 1 else ''}{_mark(mark, colour, fate)}</g>"
            )


def _mark(mark: str, colour: str, fate: str) -> str:
    looks: Mapping[str, str] = {
        "joined": f'fill="{colour}"',
        "waiting": f'fill="none" stroke="{colour}" stroke-width="2"',
        "unmatched": 'fill="currentColor" opacity=".4"',
        "alone": 'fill="none" stroke="currentColor" stroke-width="1.6"',
    }
    if fate == "dropped":
        return f'<path d="{timeline.CROSS}" stroke="{RED}" stroke-width="2.5" fill="none"/>'
    slash = '<path d="M-6 6L6-6" stroke="currentColor" stroke-width="1.6"/>' if fate == "alone" else ""
    return f'<path d="{mark}" {looks[fate]}/>{slash}'
