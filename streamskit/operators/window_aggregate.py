"""Aggregation of a stream by key and window."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import SlidingWindows, TimeWindows
from streamskit.operators.aggregate import Folding, Reader, Step, counting
from streamskit.operators.records import STORE_ONLY, OperatorRecord
from streamskit.operators.sliding_window_aggregate import SlidingProcess
from streamskit.operators.stream_task import Forward, OperatorContext, Process
from streamskit.operators.throttle import Throttle
from streamskit.operators.window_store import BytesWindowStore


@dataclass(frozen=True)
class WindowAggregateOperator(Folding):
    """Folds records into one aggregate for each key and window; a result's key is the key and the window's start.

    A record without a key is dropped, and so is one for a window that has closed, once for each such window. Mirrors
    `KStreamWindowAggregate` and `KStreamSlidingWindowAggregate`.

    Args:
        windows: the windows; the arguments before are those of `Folding`.
        retention: how long the store keeps a window, in milliseconds.
        on_close: whether a window's result goes out once, when the window closes.
        counting: counts records in place of calling the functions, without a look at the values.
        logged: whether updates that wait for their window to close come out at once too, for the store's changelog.
    """

    windows: TimeWindows | SlidingWindows
    retention: int
    on_close: bool = False
    counting: bool = False
    logged: bool = False

    @property
    def folds(self) -> bool:
        return not self.on_close

    def open(self, task: OperatorContext) -> Process:
        store = BytesWindowStore(task, self.name, self.retention, by_time=self.on_close)
        step = counting(task.is_cached) if self.counting else self.step(task.is_cached)
        readers: list[Reader] = [_as_it_is] * len(self.inputs) if self.counting else self.readers()
        emit_closed = final_results(task, store) if self.on_close else None
        forward = forwarding(task, self.on_close, self.logged)
        if isinstance(self.windows, SlidingWindows):
            return SlidingProcess(self.windows, task, store, readers, step, forward, emit_closed)
        return _time_windows(self.windows, task, store, readers, step, forward, emit_closed)


def _time_windows(
    windows: TimeWindows, task: OperatorContext, store: BytesWindowStore, readers: list[Reader], step: Step,
    forward: Forward, emit_closed: "EmitClosed | None",
) -> Process:  # fmt: skip
    memory, drop, windows_of, begin = task.memory, task.drop, store.windows_of, store.begin
    size, grace, starting_for = windows.size, windows.grace, windows.starting_for
    is_tumbling = windows.advance == size
    memory.setdefault("stream time", -1)

    def process(side: int, record: OperatorRecord) -> None:
        key, data, _, _, timestamp, headers = record
        if key is None:
            return drop()
        if timestamp > memory["stream time"]:
            memory["stream time"] = timestamp
        closed = memory["stream time"] - grace
        value = None if data is None else readers[side](data)
        kept = windows_of(key)
        for start in (timestamp - timestamp % size,) if is_tumbling else starting_for(timestamp):
            if start + size <= closed:
                drop()
                continue
            row = kept.get(start)
            if row is None:
                begin(key, kept, start)
            aggregate, latest = row or (None, timestamp)
            old, new = step(side, key, value, aggregate)
            latest = max(latest, timestamp)
            update(kept, start, new, latest)
            forward(key + start.to_bytes(8, "big"), new, latest, headers, old)
        return emit_closed(closed - size, headers) if emit_closed else None

    return process


def update(windows: dict[int, Any], start: int, value: bytes | None, latest: int) -> None:
    """Set a window's aggregate and its latest time; None deletes it."""
    if value is None:
        windows.pop(start, None)
    else:
        windows[start] = (value, latest)


EmitClosed = Callable[[int, Any], None]
"""Passes on the windows that start no later than a time, with the headers of the record that closed them."""


def final_results(task: OperatorContext, store: BytesWindowStore) -> EmitClosed:
    """Return the function that passes on, once, the results of windows that have closed."""
    forward, throttle = task.forward, Throttle(task)

    def emit_closed(last_start: int, headers: Any) -> None:
        if throttle.lets_pass():
            for key, start, (value, latest) in store.take_closed(last_start):
                forward(key + start.to_bytes(8, "big"), value, latest, headers)

    return emit_closed


def forwarding(task: OperatorContext, on_close: bool, logged: bool) -> Forward:
    """Return how updates go on: to all; but of what speaks only when it closes to the changelog, or nowhere."""
    if not on_close:
        return task.forward
    if not logged:
        return lambda *_, **__: None

    def store_only(
        key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
        old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
    ) -> None:  # fmt: skip
        task.forward(key, value, timestamp, headers, old, STORE_ONLY)

    return store_only


def _as_it_is(data: bytes | None) -> Any:
    return data
