"""What happens to each record in turn: the operators of a task, run again on the records that a view shows."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from streamskit.api.windows import AnyWindows, JoinWindows, SessionWindows, SlidingWindows, TimeWindows, Windowed
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
from streamskit.state.rows import matches
from streamskit.views.html import time_beside, time_of_day
from streamskit.views.page import Snapshot
from streamskit.views.record_source import ShownRecord

FATES = ("joined", "alone", "waiting", "unmatched", "dropped")
"""What may happen to a record: see `JoinSnapshot.fates`."""


@dataclass(frozen=True)
class ReplayedRecord:
    """What one record did to stream time and to windows, which others it met, and why it was lost if it was.

    Stream time is the operator's own, in milliseconds, -1 before the first record that moves it. `windows` says how
    many records each now holds, None for a session that has grown into another; `pairs` are those made in a join, as
    places of records among the arrivals, left and right, None where a side stays empty; `missed` counts the windows
    that had closed, or 1 for a record that has no place at all.
    """

    arrival: ShownRecord
    stream_time_before: int
    stream_time: int
    windows: dict[Windowed, int | None] = field(default_factory=dict)
    pairs: tuple[tuple[int | None, int | None], ...] = ()
    missed: int = 0
    why: str = ""

    @property
    def is_dropped(self) -> bool:
        """Whether the record is lost as a whole."""
        return bool(self.missed) and not self.windows and not self.pairs


def replay_windows(windows: AnyWindows, retention: int, arrivals: Iterable[ShownRecord]) -> list[ReplayedRecord]:
    """Return what each record did to the windows that it falls into.

    Args:
        windows: the windows.
        retention: how long the store keeps one, in milliseconds.
        arrivals: the records of one task, in the order they came.
    """

    def changed(outputs: Sequence[Output]) -> dict[Windowed, int | None]:
        counts = (None if each.value is None else int.from_bytes(each.value, "big") for each in outputs)
        return dict(zip((_window(each, windows) for each in outputs), counts, strict=True))

    replayed = _replayed(_counting(windows, retention), arrivals)
    steps = [replace(step, windows=changed(outputs)) for step, outputs in replayed]
    return [replace(step, why=_why_late(step, windows)) if step.missed else step for step in steps]


def replay_join(
    windows: JoinWindows, outer: tuple[bool, bool], arrivals: Iterable[ShownRecord]
) -> list[ReplayedRecord]:
    """Return which records each record meets.

    Args:
        windows: how far apart two records may be.
        outer: for the left and for the right stream, whether its records are emitted without a match.
        arrivals: the records of one task, in the order they came; their sides say whether they are left or right.
    """

    def met(outputs: Sequence[Output]) -> tuple[tuple[int | None, int | None], ...]:
        return tuple((_place(each.value), _place(each.other)) for each in outputs)

    replayed = _replayed(StreamJoinOperator("join", windows, outer), arrivals)
    steps = [replace(step, pairs=met(outputs)) for step, outputs in replayed]
    return [replace(step, why=_why_unjoined(step)) if step.missed else step for step in steps]


def closed_until(windows: AnyWindows, stream_time: int, grace: int | None = None) -> int:
    """Return the latest end that a window which has closed by a stream time may have, all in milliseconds."""
    patience = windows.grace if grace is None else grace
    if isinstance(windows, SessionWindows):
        return stream_time - patience - windows.gap - 1
    # The end of a sliding window is in it, that of a time window is not.
    return stream_time - patience - (1 if isinstance(windows, SlidingWindows) else 0)


def state_of(window: Windowed, windows: AnyWindows, stream_time: int) -> str:
    """Return "open", "in grace" (it has ended, and still takes late records), or "closed"."""
    if window.end <= closed_until(windows, stream_time):
        return "closed"
    return "in grace" if window.end <= closed_until(windows, stream_time, grace=0) else "open"


def windows_after(steps: Sequence[ReplayedRecord]) -> dict[Windowed, int]:
    """Return the windows that there were after some steps, and how many records each held."""
    latest = {window: count for step in steps for window, count in step.windows.items()}
    return {window: count for window, count in latest.items() if count is not None}


def _replayed(operator: Operator, arrivals: Iterable[ShownRecord]) -> Iterator[tuple[ReplayedRecord, list[Output]]]:
    """Process records as a task does; the value of each is its number, which identifies it in the outputs."""
    task = StreamTask([operator], NoPages(), wall_clock=0)
    memory = task.memory.of(operator.name)
    stream_time, lost = -1, 0
    for number, arrival in enumerate(arrivals):
        before, lost_before = stream_time, lost
        key = None if arrival.key is None else arrival.key.encode()
        value = None if arrival.value is None else str(number).encode()
        for side in arrival.reached:
            task.process(0, side, OperatorRecord(key, value, None, None, arrival.timestamp, None))
        # Stream time as the operator sees it: a record without a key, for one, does not move it.
        stream_time, lost = int(memory.get("stream time", -1)), sum(task.dropped.values())
        missed = lost - lost_before if not arrival.refused else 1
        yield ReplayedRecord(arrival, before, stream_time, missed=missed), task.take_outputs()


def _counting(windows: AnyWindows, retention: int) -> Operator:
    text = Serdes.string()
    folding = ("windows", text, (text,), Serdes.long(), None, ())
    if isinstance(windows, SessionWindows):
        return SessionAggregateOperator(*folding, windows, retention, counting=True)
    if isinstance(windows, SlidingWindows):
        return SlidingWindowAggregateOperator(*folding, windows, retention, counting=True)
    return WindowAggregateOperator(*folding, windows, retention, counting=True)


def _window(output: Output, windows: AnyWindows) -> Windowed:
    """Return the window that a result is of, by the bytes of its key."""
    data = output.key or b""
    if isinstance(windows, SessionWindows):
        end, start = (int.from_bytes(part, "big") for part in (data[-16:-8], data[-8:]))
        return Windowed(data[:-16].decode(), start, end)
    start = int.from_bytes(data[-8:], "big")
    return Windowed(data[:-8].decode(), start, start + windows.size)


def _place(value: bytes | None) -> int | None:
    return None if value is None else int(value)


def _why_late(step: ReplayedRecord, windows: AnyWindows) -> str:
    arrival = step.arrival
    if arrival.refused:
        return arrival.refused
    if arrival.key is None:
        return "it has no key"
    if arrival.value is None and isinstance(windows, SlidingWindows):
        return "it has no value"
    now = time_beside(step.stream_time, arrival.timestamp)
    if step.windows:
        held = len(step.windows)
        return f"too late for {step.missed} of its {held + step.missed} windows: they had closed at stream time {now}"
    if isinstance(windows, TimeWindows):
        start = windows.starting_for(arrival.timestamp)[-1]
        end, closes = (time_beside(start + windows.size + more, start) for more in (0, windows.grace))
        return f"too late: its last window, {time_of_day(start)} – {end}, had closed at {closes}"
    what = "a session that ends with it" if isinstance(windows, SessionWindows) else "its windows"
    return f"too late: {what} had closed, for stream time was {now}"


def _why_unjoined(step: ReplayedRecord) -> str:
    if step.arrival.refused:
        return step.arrival.refused
    if step.arrival.key is None:
        return "it has no key"
    if step.arrival.value is None:
        return "it has no value"
    return f"too late to be kept: stream time was {time_beside(step.stream_time, step.arrival.timestamp)}"


# ---- snapshots of what was replayed ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeenRecords:
    """What a view of event time has seen of one task's records.

    `topics` are theirs, `partition` is the one of the `partitions` that this is; `before` counts the records before
    the first one kept; `caveat` says what cannot be known from them; `dropped` counts what each node of the engine
    reports as dropped, over all partitions; `stopped` says why no more will come.
    """

    topics: Sequence[str]
    partition: int
    partitions: Sequence[int]
    arrivals: Sequence[ShownRecord]
    before: int
    caveat: str
    dropped: Mapping[str, int]
    stopped: str = ""


@dataclass(frozen=True, kw_only=True)
class EventTimeSnapshot(Snapshot):
    """What an operator made of the first `at` of the records that were seen, in as many steps.

    `is_chosen` says whether the user has chosen how many.
    """

    seen: SeenRecords
    steps: Sequence[ReplayedRecord]
    at: int
    is_chosen: bool = False

    @property
    def done(self) -> Sequence[ReplayedRecord]:
        """The steps so far."""
        return self.steps[: self.at]

    def after(self, count: int) -> Self:
        """Return the same after another number of records."""
        return replace(self, at=max(0, min(count, len(self.steps))))


@dataclass(frozen=True, kw_only=True)
class WindowSnapshot(EventTimeSnapshot):
    """The windows of a store; `search` is the beginning of the keys to show."""

    windows: AnyWindows
    search: str = ""

    @property
    def keys(self) -> list[str]:
        """The keys to show, in the order they came."""
        came = dict.fromkeys(step.arrival.key for step in self.steps if not step.arrival.refused)
        return [key for key in came if key is not None and matches(key, self.search)]


@dataclass(frozen=True, kw_only=True)
class JoinSnapshot(EventTimeSnapshot):
    """A join of two streams: the names of the left and the right one, and whose records are emitted without a match."""

    names: tuple[str, str]
    windows: JoinWindows
    outer: tuple[bool, bool]

    @property
    def pairs(self) -> list[tuple[int | None, int | None]]:
        """The results so far, as places of records among the steps, left and right; None where a side stays empty."""
        return [pair for step in self.done for pair in step.pairs]

    def fates(self) -> Mapping[tuple[int, int], str]:
        """Return what has become of each record, by its side and place.

        It is "joined", was emitted "alone", is "waiting" for a match that may still come, "unmatched" when its window
        has closed, or "dropped".
        """
        met = {(side, pair[side]) for pair in self.pairs for side in (0, 1) if None not in pair}
        alone = {(side, pair[side]) for pair in self.pairs for side in (0, 1) if pair[1 - side] is None}
        now = self.done[-1].stream_time if self.done else 0
        fates = {}
        for place, step in enumerate(self.done):
            for side in step.arrival.sides:
                reach = self.windows.before_ms if side else self.windows.after_ms
                is_over = step.arrival.timestamp + reach + self.windows.grace < now
                which = (side, place)
                fate = (
                    "joined" if which in met else "alone" if which in alone else "unmatched" if is_over else "waiting"
                )
                fates[which] = "dropped" if step.is_dropped else fate
        return fates


def window_snapshot(
    name: str, windows: AnyWindows, retention: int, seen: SeenRecords, search: str = "",
    previous: WindowSnapshot | None = None,
) -> WindowSnapshot:  # fmt: skip
    """Return the windows after all records that were seen; nothing is computed again if none are new.

    Args:
        name: the store's name.
        windows: its windows.
        retention: how long it keeps them, in milliseconds.
        seen: the records.
        search: the beginning of the keys to show.
        previous: the snapshot before.
    """
    steps = _steps(seen, previous, partial(replay_windows, windows, retention))
    return WindowSnapshot(**_seen(name, seen, steps), windows=windows, search=search)


def join_snapshot(
    name: str, names: tuple[str, str], windows: JoinWindows, outer: tuple[bool, bool], seen: SeenRecords,
    previous: JoinSnapshot | None = None,
) -> JoinSnapshot:  # fmt: skip
    """Return the join after all records that were seen; nothing is computed again if none are new.

    Args:
        name: the join's name.
        names: what the left and the right stream are called.
        windows: how far apart two records may be.
        outer: for each side, whether its records are emitted without a match.
        seen: the records.
        previous: the snapshot before.
    """
    steps = _steps(seen, previous, partial(replay_join, windows, outer))
    return JoinSnapshot(**_seen(name, seen, steps), names=names, windows=windows, outer=outer)


def _steps(
    seen: SeenRecords,
    previous: EventTimeSnapshot | None,
    replay: Callable[[Sequence[ShownRecord]], Sequence[ReplayedRecord]],
) -> Sequence[ReplayedRecord]:
    is_known = previous is not None and previous.seen.arrivals == seen.arrivals
    return previous.steps if previous is not None and is_known else replay(seen.arrivals)


def _seen(name: str, seen: SeenRecords, steps: Sequence[ReplayedRecord]) -> dict[str, Any]:
    now = time.time()
    return {"name": name, "seen": seen, "steps": steps, "at": len(steps), "taken_at": now, "stopped": seen.stopped}
