"""The page of a verdict: what is wrong, as a picture on the axis of event time and as a table. HTML as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from traceback import TracebackException

from streamskit.api.windows import Windowed
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.difference import Moment, Outcome
from streamskit.course.labs.exercise import Verdict
from streamskit.course.labs.recording import Advance, Batch, OutcomeRow, Piped
from streamskit.runtime.failures import Line
from streamskit.serdes.serde import SerdeError
from streamskit.views.charts import text
from streamskit.views.event_time_axis import LEFT, RED, TOP, Axis, cross, dot, mark
from streamskit.views.html import (
    CODE,
    STYLE,
    TableColumn,
    TableRow,
    as_text,
    grid,
    part,
    picture,
    text_cell,
    time_of_day,
)

MOST = 12
"""How many rows of a table are shown at most."""

MOST_CALLS = 20
"""How many calls of a traceback are shown at most: the last ones."""

LANE, BAR, DIGIT = 26, 15, 6
"""The height of a key's lane and of a window's bar, and the width of a digit, in pixels."""

MISSING, EXTRA = ("−", "expected, and did not come"), ("+", "came, and was not expected")


def page(name: str, verdict: Verdict) -> str:
    """Return the page of a verdict on the exercise `name`."""
    sign, word, look = ("✓", "passed", "sk-live") if verdict.passed else ("✗", "not yet", "sk-failed")
    said = [f'<div><b class="{look}">{sign} {escape(name)}: {word}</b></div>']
    if verdict.misconception:
        said.append(f"<div><b>{escape(verdict.misconception.name)}</b>. {escape(verdict.misconception.says)}</div>")
    if not verdict.misconception or verdict.misconception.says != verdict.says:
        said.append(f"<div>{escape(verdict.says)}</div>")
    if not verdict.passed and verdict.outcome:
        said.append(chart(verdict.outcome))
    said.append(differences(_lines(verdict), "asked" if verdict.answers else "after"))
    said.append(_whole_error(verdict))
    if not verdict.passed and verdict.written:
        said.append('<div class="sk-quiet">hint() says more, in three steps.</div>')
    if verdict.passed:
        said.append(f'<div class="sk-quiet">solution("{escape(name)}") shows ours beside yours.</div>')
    return STYLE + part("".join(f"<div>{each}</div>" for each in said if each), "verdict")


def plain(name: str, verdict: Verdict) -> str:
    """Return the verdict as text, for where no page can be shown."""
    lines = [f"{'✓' if verdict.passed else '✗'} {name}: {'passed' if verdict.passed else 'not yet'}"]
    if verdict.misconception:
        lines.append(f"{verdict.misconception.name}: {verdict.misconception.says}")
    if not verdict.misconception or verdict.misconception.says != verdict.says:
        lines.append(verdict.says)
    lines += [f"  {line.after:<34} {line.sign} {line.what}" for line in _lines(verdict)[:MOST]]
    return "\n".join(lines)


def _whole_error(verdict: Verdict) -> str:
    """Return the traceback of an error of the learner's code, folded, from their first line on."""
    error = verdict.cause
    if verdict.passed or error is None or isinstance(error, StreamsKitError | SerdeError):
        return ""
    told = TracebackException.from_exception(error)
    is_users = [Line(frame.filename, frame.lineno or 0).is_users for frame in told.stack]
    first = is_users.index(True) if any(is_users) else 0
    told.stack[:] = told.stack[first:][-MOST_CALLS:]
    summary = '<summary style="cursor:pointer">The whole error</summary>'
    lines = escape("".join(told.format()))
    return f'<details>{summary}<pre style="{CODE}">{lines}</pre></details>'


# ---- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DifferenceLine:
    """One row of the table: after which record, which sign, and the record; or which question, and the answer."""

    after: str
    sign: str
    meaning: str
    what: str


def differences(lines: Sequence[DifferenceLine], first: str) -> str:
    """Return the table of what is missing and what should not be there (+); `first` is above its first column."""
    if not lines:
        return ""
    columns = (TableColumn(first, 330, left=True), TableColumn("− expected   + yours", 560, left=True))
    shown = [
        TableRow(
            (text_cell(line.after), text_cell(line.what)),
            line.sign,
            line.meaning,
            "sk-bad" if line.sign == "+" else "sk-new",
        )
        for line in lines[:MOST]
    ]
    more = f'<div class="sk-quiet">and {len(lines) - MOST} more</div>' if len(lines) > MOST else ""
    return grid(columns, shown, "whether it is missing or too much") + more


def _lines(verdict: Verdict) -> list[DifferenceLine]:
    if verdict.passed:
        return []
    answers = [
        DifferenceLine(asked, *sign, what)
        for asked, expected, given in verdict.answers
        for sign, what in ((MISSING, expected), (EXTRA, given))
    ]
    return answers + (_lines_of(verdict.outcome) if verdict.outcome else [])


def _lines_of(outcome: Outcome) -> list[DifferenceLine]:
    lines = []
    several = len(outcome.recording.outputs) > 1
    for moment in outcome.differing:
        where = f"{moment.topic}: " if several else ""
        pairs = [(MISSING, row) for row in moment.missing] + [(EXTRA, row) for row in moment.extra]
        if not pairs:  # the same records in another order
            pairs = [(MISSING, row) for row in moment.expected] + [(EXTRA, row) for row in moment.actual]
        lines += [DifferenceLine(step_told(moment), *sign, where + row_told(row)) for sign, row in pairs]
    for store in outcome.stores:
        pairs = [(MISSING, row) for row in store.missing] + [(EXTRA, row) for row in store.extra]
        pairs.sort(key=lambda pair: as_text(pair[1].key))  # the two rows of a key beside each other
        lines += [DifferenceLine(f"in the store {store.name}", *sign, row_told(row)) for sign, row in pairs]
    return lines


def step_told(moment: Moment) -> str:
    """Say which step it was, as in "3. ann = 5 at 00:00:50"."""
    number, step = moment.number + 1, moment.step
    if isinstance(step, Advance):
        return f"{number}. wall clock + {step.milliseconds / 1000:g} s"
    if isinstance(step, Piped):
        return f"{number}. {_pair(step.key, step.value)} at {time_of_day(step.timestamp)}"
    if isinstance(step, Batch):
        return f"{number}. {len(step.records)} records of {step.records[0].topic}"
    return f"{number}."


def row_told(row: OutcomeRow) -> str:
    """Write a record: key, window, value and time."""
    at = "" if row.timestamp is None else f" at {time_of_day(row.timestamp)}"
    return _pair(row.key, row.value) + at


def _pair(key: object, value: object) -> str:
    if isinstance(key, Windowed):
        key = f"{as_text(key.key)} [{time_of_day(key.start)}, {time_of_day(key.end)})"
    return f"{_part(key)} = {_part(value)}"


def _part(part: object) -> str:
    """Write a key or a value; bytes as the text that they may be."""
    return part.decode(errors="backslashreplace") if isinstance(part, bytes) else as_text(part)


# ---- the picture -----------------------------------------------------------------------------------------------------


def chart(outcome: Outcome) -> str:
    """Return a picture of the records on the axis of event time, and of the windows that are wrong."""
    records = [(number, step) for number, step in enumerate(outcome.recording.steps) if isinstance(step, Piped)]
    if not records or not outcome.differing or any(step.timestamp < 0 for _, step in records):
        return ""
    bad = {moment.number for moment in outcome.differing}
    windows = _wrong_windows(outcome)
    axis = Axis.of([step.timestamp for _, step in records] + [time for w, _ in windows for time in (w.start, w.end)])
    lanes: dict[str, list[tuple[int, Piped]]] = {}
    for number, step in records:
        lanes.setdefault(as_text(step.key), []).append((number, step))
    parts: list[str] = []
    y = float(TOP + 6)
    for key, own in lanes.items():
        parts.append(text(LEFT - 10, y + 4, key[:14], "end"))
        parts += [_dot(axis.x(step.timestamp), y, number, step, number in bad, outcome) for number, step in own]
        parts += _numbers([(axis.x(step.timestamp), number + 1) for number, step in own], y - 11)
        y += LANE
        for window, sign in [(window, sign) for window, sign in windows if as_text(window.key) == key]:
            parts.append(axis.window(window, y - 8, 12, "missing" if sign == "−" else "extra", sign, narrow=0))
            y += BAR
    bottom = y + 2
    title = "Records by event time; a ring marks those after which something is wrong, a cross those that are dropped"
    legend = "windows: − expected, and did not come   + came, and was not expected" if windows else ""
    return picture(axis.picture(title, bottom, [*parts, text(LEFT, 29, legend) if windows else ""]))


def _wrong_windows(outcome: Outcome) -> list[tuple[Windowed, str]]:
    """The windows that are missing altogether, and the unexpected ones."""
    due = {(w.key, w.start, w.end): w for w in (row.key for row in outcome.expected) if isinstance(w, Windowed)}
    came = {(w.key, w.start, w.end): w for w in (row.key for row in outcome.actual) if isinstance(w, Windowed)}
    missing = [(window, "−") for name, window in due.items() if name not in came]
    extra = [(window, "+") for name, window in came.items() if name not in due]
    return [*missing, *extra][:MOST]


def _dot(x: float, y: float, number: int, step: Piped, is_bad: bool, outcome: Outcome) -> str:
    words = f"{number + 1}. {_pair(step.key, step.value)} at {time_of_day(step.timestamp)}"
    shape = cross("currentColor") if number in outcome.recording.dropped else dot()
    return mark(x, y, words, shape, RED if is_bad else "")


def _numbers(places: Sequence[tuple[float, int]], y: float) -> Iterator[str]:
    """Write the records' numbers above them; where they would touch, together, as in "10, 11"."""
    groups: list[list[tuple[float, int]]] = []
    for place in sorted(places):
        groups.append([place])
        while len(groups) > 1 and _touch(groups[-2], groups[-1]):
            groups[-2:] = [[*groups[-2], *groups[-1]]]
    for group in groups:
        yield text(_middle(group), y, _numbered(group), "middle")


def _touch(one: list[tuple[float, int]], next_one: list[tuple[float, int]]) -> bool:
    room = (len(_numbered(one)) + len(_numbered(next_one)) + 1) * DIGIT / 2
    return _middle(next_one) - _middle(one) < room


def _middle(group: list[tuple[float, int]]) -> float:
    return sum(x for x, _ in group) / len(group)


def _numbered(group: list[tuple[float, int]]) -> str:
    return ", ".join(str(number) for number in sorted(number for _, number in group))


def hints_page(name: str, shown: Sequence[str], of: int) -> str:
    """Return the page of the hints shown so far."""
    lines = "".join(f"<li>{escape(hint)}</li>" for hint in shown)
    more = "" if len(shown) == of else f'<div class="sk-quiet">hint() again says more ({len(shown)} of {of}).</div>'
    return STYLE + part(f"<div><b>{escape(name)}</b></div><ol>{lines}</ol>{more}", "hints")
