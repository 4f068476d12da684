"""What becomes of records, one after the other: the operators that run in a task, run again on what a view shows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from streamskit.api.windows import AnyWindows, JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from streamskit.operators import (
    NoPages,
    Operator,
    OperatorRecord,
    Output,
    SessionAggregateOperator,
    SlidingWindowAggregateOperator,
    StreamJoinOperator,
    StreamTask,
    WindowAggregateOperator,
)
from streamskit.serdes import Serdes
from streamskit.views.live.html import time_of_day
from streamskit.views.live.record_source import Arrival


@dataclass(frozen=True, order=True)
class Window:
    """A key's window; start and end in milliseconds since 1970."""

    key: str
    start: int
    end: int


@dataclass(frozen=True)
class Step:
    """What one record did to stream time and to windows, which others it met, and why it was lost if it was.

    Stream time is the operator's own, in milliseconds, -1 before the first record that moves it. `windows` says how
    many records each now holds, None for a session that has grown into another; `pairs` are those made in a join, as
    places of records among the arrivals, left and right, None where a side stays empty; `missed` counts the windows
    that had closed, or 1 for a record that has no place at all.
    """

    arrival: Arrival
    stream_time_before: int
    stream_time: int
    windows: dict[Window, int | None] = field(default_factory=dict)
    pairs: tuple[tuple[int | None, int | None], ...] = ()
    missed: int = 0
    why: str = ""

    @property
    def is_dropped(self) -> bool:
        """Whether the record is lost as a whole."""
        return bool(self.missed) and not self.windows and not self.pairs


def replay_windows(windows: AnyWindows, retention: int, arrivals: Iterable[Arrival]) -> list[Step]:
    """Return what each record did to the windows that it falls into.

    Args:
        windows: the windows.
        retention: how long the store keeps one, in milliseconds.
        arrivals: the records of one task, in the order they came.
    """
    task = _Task(_counting(windows, retention))
    steps = []
    for number, arrival in enumerate(arrivals):
        step = task.step(arrival, number)
        made = {_window(each, windows): None if each.value is None else int.from_bytes(each.value, "big")
                for each in task.made}  # fmt: skip
        whole = replace(step, windows=made)
        steps.append(replace(whole, why=_why_late(whole, windows)) if whole.missed else whole)
    return steps


def replay_join(windows: JoinWindows, outer: tuple[bool, bool], arrivals: Iterable[Arrival]) -> list[Step]:
    """Return which records each record meets.

    Args:
        windows: how far apart two records may be.
        outer: for the left and for the right stream whether its records go out without a match.
        arrivals: the records of one task, in the order they came; their sides say whether they are left or right.
    """
    task = _Task(StreamJoinOperator("join", windows, outer))
    steps = []
    for number, arrival in enumerate(arrivals):
        step = task.step(arrival, number)
        whole = replace(step, pairs=tuple((_place(each.value), _place(each.other)) for each in task.made))
        steps.append(replace(whole, why=_why_unjoined(whole)) if whole.missed else whole)
    return steps


def closed_until(windows: AnyWindows, stream_time: int, grace: int | None = None) -> int:
    """Return the latest end that a window which has closed by a stream time may have, all in milliseconds."""
    patience = windows.grace if grace is None else grace
    if isinstance(windows, SessionWindows):
        return stream_time - patience - windows.gap - 1
    # The end of a sliding window is in it, that of a time window is not.
    return stream_time - patience - (1 if isinstance(windows, SlidingWindows) else 0)


def state_of(window: Window, windows: AnyWindows, stream_time: int) -> str:
    """Return "open", "in grace" (it has ended, and still takes late records), or "closed"."""
    if window.end <= closed_until(windows, stream_time):
        return "closed"
    return "in grace" if window.end <= closed_until(windows, stream_time, grace=0) else "open"


def windows_after(steps: Sequence[Step]) -> dict[Window, int]:
    """Return the windows that there were after some steps, and how many records each held."""
    found: dict[Window, int] = {}
    for step in steps:
        for window, count in step.windows.items():
            if count is None:
                found.pop(window, None)
            else:
                found[window] = count
    return found


class _Task:
    """One operator with its state, as a task of the application has it."""

    def __init__(self, operator: Operator) -> None:
        self._stage = StreamTask([operator], NoPages(), wall_clock=0)
        self._memory = self._stage.memory.of(operator.name)
        self.made: list[Output] = []

    def step(self, arrival: Arrival, number: int) -> Step:
        """Process a record; its value is its number, by which it can be told in the results."""
        before, lost = self._stream_time(), self._lost()
        key = None if arrival.key is None else arrival.key.encode()
        value = None if arrival.value is None else str(number).encode()
        for side in arrival.sides:
            self._stage.process(0, side, OperatorRecord(key, value, None, None, arrival.timestamp, None))
        self.made = self._stage.take_outputs()
        return Step(arrival, before, self._stream_time(), missed=self._lost() - lost)

    def _stream_time(self) -> int:
        # As the operator sees it: a record without a key, for one, does not move it.
        return int(self._memory.get("stream time", -1))

    def _lost(self) -> int:
        return sum(self._stage.dropped.values())


def _counting(windows: AnyWindows, retention: int) -> Operator:
    text = Serdes.string()
    folding = ("windows", text, (text,), Serdes.long(), None, ())
    if isinstance(windows, SessionWindows):
        return SessionAggregateOperator(*folding, windows, retention, counting=True)
    if isinstance(windows, SlidingWindows):
        return SlidingWindowAggregateOperator(*folding, windows, retention, counting=True)
    return WindowAggregateOperator(*folding, windows, retention, counting=True)


def _window(made: Output, windows: AnyWindows) -> Window:
    """Return the window that a result is of, by the bytes of its key."""
    data = made.key or b""
    if isinstance(windows, SessionWindows):
        end, start = (int.from_bytes(part, "big") for part in (data[-16:-8], data[-8:]))
        return Window(data[:-16].decode(), start, end)
    start = int.from_bytes(data[-8:], "big")
    return Window(data[:-8].decode(), start, start + windows.size)


def _place(value: bytes | None) -> int | None:
    return None if value is None else int(value)


def _why_late(step: Step, windows: AnyWindows) -> str:
    arrival = step.arrival
    if arrival.key is None:
        return "it has no key"
    if arrival.value is None and isinstance(windows, SlidingWindows):
        return "it has no value"
    now = time_of_day(step.stream_time)
    if step.windows:
        held = len(step.windows)
        return f"too late for {step.missed} of its {held + step.missed} windows: they had closed at stream time {now}"
    if isinstance(windows, TimeWindows):
        start = windows.starting_for(arrival.timestamp)[-1]
        closes = time_of_day(start + windows.size + windows.grace)
        return (
            f"too late: its last window, {time_of_day(start)} – {time_of_day(start + windows.size)}, had closed at "
            f"{closes}"
        )
    what = "a session that ends with it" if isinstance(windows, SessionWindows) else "its windows"
    return f"too late: {what} had closed, for stream time was {now}"


def _why_unjoined(step: Step) -> str:
    if step.arrival.key is None:
        return "it has no key"
    if step.arrival.value is None:
        return "it has no value"
    return f"too late to be kept: stream time was {time_of_day(step.stream_time)}"
