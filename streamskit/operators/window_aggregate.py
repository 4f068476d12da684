"""Aggregation of a stream by key and time window, tumbling or hopping; and what it shares with other windows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import AnyWindows, TimeWindows, UnlimitedWindows
from streamskit.operators.aggregate import AbstractStreamAggregate, Deserializer, Update, count
from streamskit.operators.bytes_timed_stores import BytesWindowStore
from streamskit.operators.records import STORE_ONLY, OperatorRecord
from streamskit.operators.stream_task import Forward, OperatorContext, ProcessRecord

EmitClosed = Callable[[int, Any], None]
"""Emits the windows that start (sessions: end) by a time, with the headers of the record that closed them."""

ClosedWindows = Callable[[int], Iterable[tuple[bytes, bytes | None, int]]]
"""Returns, once, windowed key, aggregate and timestamp of the windows that start (sessions: end) by a time."""


@dataclass(frozen=True)
class AbstractWindowedAggregate(AbstractStreamAggregate):
    """What all aggregations by window have in common: retention, and when results are emitted.

    Args:
        windows: the windows; the preceding arguments are those of `AbstractStreamAggregate`.
        retention: how long the store keeps a window, in milliseconds.
        on_close: whether a window's result is emitted once, when the window closes.
        counting: counts records instead of calling the functions, without looking at the values.
        logged: whether updates that wait for their window to close are also emitted at once, for the store's changelog.
    """

    windows: AnyWindows
    retention: int
    on_close: bool = False
    counting: bool = False
    logged: bool = False

    @property
    def is_cacheable(self) -> bool:
        return not self.on_close

    def deserializers(self) -> list[Deserializer]:
        """Return for each side the function that decodes a value; a count leaves values as they are."""
        return [lambda data: data] * len(self.inputs) if self.counting else super().deserializers()

    def update(self, is_cached: bool) -> Update:
        """Return the function that adds one value to one aggregate."""
        return count(is_cached) if self.counting else super().update(is_cached)

    def stream_times(self, context: OperatorContext) -> list[str]:
        """Return for each side the name under which the memory keeps its stream time; in a cogroup each has its own."""
        names = ["stream time", *(f"stream time of side {side}" for side in range(1, len(self.inputs)))]
        for name in names:
            context.memory.setdefault(name, -1)
        return names

    def forward_updates(self, context: OperatorContext) -> Forward:
        """Return the function that passes on updates: to all, or with results on close to the changelog, if any."""
        if not self.on_close:
            return context.forward
        if not self.logged:
            return lambda *_, **__: None
        return lambda key, value, timestamp, headers, old=None, other=None, other_old=None: context.forward(
            key, value, timestamp, headers, old, STORE_ONLY
        )

    def emit_closed(self, context: OperatorContext, closed: ClosedWindows) -> EmitClosed | None:
        """Return the function that emits, once, the results of windows that have closed; None without `on_close`."""
        if not self.on_close:
            return None

        def emit(last: int, headers: Any) -> None:
            if context.may_emit():
                for key, value, timestamp in closed(last):
                    context.forward(key, value, timestamp, headers)

        return emit


def closed_windows(store: BytesWindowStore) -> ClosedWindows:
    """Return the function that takes closed windows from a store."""
    return lambda last: (
        (windowed_key(key, start), value, latest) for key, start, (value, latest) in store.take_closed(last)
    )


def windowed_key(key: bytes, start: int) -> bytes:
    """Return the key of a window's results: the record's key, then the window's start in 8 bytes."""
    return key + start.to_bytes(8, "big")


@dataclass(frozen=True)
class WindowAggregateOperator(AbstractWindowedAggregate):
    """Time-window aggregation: one aggregate for each key and tumbling, hopping or unlimited window.

    A result's key is the key and the window's start. A record without a key is dropped, and so is one for a window that
    has closed, once for each such window. The arguments are those of `AbstractWindowedAggregate`.
    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamWindowAggregate`.
    """

    windows: TimeWindows | UnlimitedWindows

    def open(self, context: OperatorContext) -> ProcessRecord:
        store = BytesWindowStore(context, self.name, self.retention, by_time=self.on_close, emits_old=context.has_cache)
        deserializers, update = self.deserializers(), self.update(context.is_cached)
        forward, emit_closed = self.forward_updates(context), self.emit_closed(context, closed_windows(store))
        memory, drop, windows_of, begin = context.memory, context.drop, store.windows_of, store.begin
        size, grace, starting_for = self.windows.size, self.windows.grace, self.windows.starting_for
        is_tumbling = isinstance(self.windows, TimeWindows) and self.windows.advance == size
        stream_times = self.stream_times(context)
        # One stream's open windows can all be fetched; another stream of a cogroup may have advanced the store further.
        is_cached = context.is_cached
        may_be_old = len(self.inputs) > 1 and not is_cached

        def process(side: int, record: OperatorRecord) -> None:
            key, data, _, _, timestamp, headers = record
            if key is None:
                return drop()
            stream_time = memory[stream_times[side]]
            if timestamp > stream_time:
                stream_time = memory[stream_times[side]] = timestamp
            closed = stream_time - grace
            value = None if data is None else deserializers[side](data)
            windows = windows_of(key)
            for start in (timestamp - timestamp % size,) if is_tumbling else starting_for(timestamp):
                if start + size <= closed:
                    drop()
                    continue
                row = windows.get(start)
                if row is None:
                    begin(key, windows, start)
                elif may_be_old and not store.is_in_sight(start):
                    row = None
                aggregate, latest = row or (None, timestamp)
                old, new = update(side, key, value, aggregate)
                latest = max(latest, timestamp)
                if new is None:
                    windows.pop(start, None)
                    latest = timestamp if is_cached else latest
                else:
                    windows[start] = (new, latest)
                if may_be_old and store.is_forgotten(start):
                    drop()
                forward(key + start.to_bytes(8, "big"), new, latest, headers, old)
            return emit_closed(closed - size, headers) if emit_closed else None

        return process
