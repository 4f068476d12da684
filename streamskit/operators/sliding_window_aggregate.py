"""Aggregation of a stream by key and sliding window: each record opens one that ends at it, and one just after it."""

from dataclasses import dataclass

from streamskit.api.windows import SlidingWindows
from streamskit.operators.bytes_timed_stores import BytesWindowStore
from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import OperatorContext, ProcessRecord
from streamskit.operators.window_aggregate import AbstractWindowedAggregate, closed_windows, windowed_key

AggregateAndTimestamp = tuple[bytes | None, int]
"""A window's aggregate and the largest timestamp in it."""


@dataclass(frozen=True)
class SlidingWindowAggregateOperator(AbstractWindowedAggregate):
    """Sliding-window aggregation: one aggregate for each key and window of records that are close in time.

    Windows could begin anywhere; only those that differ in their records are kept. For a record at t these are the left
    one, [t - difference, t], and, once a later record falls into it, the right one, [t + 1, t + 1 + difference]. A new
    window takes over the aggregate of its neighbour where both hold the same records.

    A result's key is the key and the window's start. A record without key or value is dropped, and so is one whose
    windows have closed. The arguments are those of `AbstractWindowedAggregate`.
    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamSlidingWindowAggregate`.
    """

    windows: SlidingWindows

    def open(self, context: OperatorContext) -> ProcessRecord:
        return _SlidingProcess(self, context).process


class _SlidingProcess:
    """Updates the windows that hold a record, and creates those that it opens."""

    def __init__(self, operator: SlidingWindowAggregateOperator, context: OperatorContext) -> None:
        self._difference, self._grace = operator.windows.time_difference, operator.windows.grace
        self._store = BytesWindowStore(context, operator.name, operator.retention, by_time=operator.on_close)
        self._deserializers, self._add = operator.deserializers(), operator.update(context.is_cached)
        self._forward = operator.forward_updates(context)
        self._emit_closed = operator.emit_closed(context, closed_windows(self._store))
        self._memory, self._drop, self._is_cached = context.memory, context.drop, context.is_cached
        self._stream_times = operator.stream_times(context)
        # Another stream of a cogroup may have advanced the store so far that it has deleted the segment of a window.
        self._may_be_old = len(operator.inputs) > 1 and not context.is_cached

    def process(self, side: int, record: OperatorRecord) -> None:
        """Process one record."""
        key, data, _, _, timestamp, headers = record
        value = None if data is None else self._deserializers[side](data)
        if key is None or value is None:
            return self._drop()
        name = self._stream_times[side]
        stream_time = self._memory[name] = max(self._memory[name], timestamp)
        self._closed = stream_time - self._grace
        if timestamp + self._difference < self._closed:
            return self._drop()
        self._side, self._key, self._value, self._timestamp, self._headers = side, key, value, timestamp, headers
        if timestamp < self._difference:
            return self._process_early()
        self._process()
        if self._emit_closed is not None:
            self._emit_closed(self._closed - self._difference - 1, headers)
        return None

    def _process(self) -> None:
        """Update and create windows, none of which would start before 0."""
        time, difference = self._timestamp, self._difference
        windows = self._store.fetch_range(self._key, max(0, time - 2 * difference), time + 1)
        left = right = previous = None
        has_left = has_right = False
        starts = {start for start, _ in windows}
        for start, row in reversed(windows):
            if start == time + 1:
                has_right = True
            elif start + difference > time:
                right = right or row
                self._update(start, row)
            elif start + difference == time:
                has_left = True
                self._update(start, row)
                if row[1] >= time:
                    return
                previous = row[1]
            else:
                left, previous = row, row[1]
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + difference >= time:
            self._update(previous + 1, None)
        if not has_left:
            reaches_back = previous is not None and left is not None and time - difference <= previous
            self._update(time - difference, (left[0], time) if reaches_back and left else None, is_new=True)
        if not has_right:
            self._open_right(right)

    def _process_early(self) -> None:
        """Update and create windows for a record so early that its left one would start before 0.

        All such records share the window [0, difference].
        """
        time, right, combined, previous = self._timestamp, None, None, None
        windows = self._store.fetch_range(self._key, 0, time + 1)
        starts = {start for start, _ in windows}
        for start, row in windows:
            if start == 0:
                combined = row
                previous = row[1] if row[1] < time else None
            elif start <= time:
                right = row
                self._update(start, row)
        if time + 1 not in starts:
            self._open_right(right or (combined if combined is not None and combined[1] > time else None))
        if previous is not None and previous + 1 not in starts:
            self._update(previous + 1, None)
        self._update(0, combined)

    def _update(self, start: int, row: AggregateAndTimestamp | None, is_new: bool = False) -> None:
        """Add the record to a window whose aggregate so far is in `row`; None is a window without records yet."""
        if start + self._difference < self._closed:
            return self._drop()
        aggregate, latest = row or (None, self._timestamp)
        old, new = self._add(self._side, self._key, self._value, aggregate)
        latest = self._timestamp if new is None and self._is_cached else max(latest, self._timestamp)
        self._put(None if new is None else (new, latest), start)
        return self._send(start, new, latest, None if is_new and self._is_cached else old)

    def _open_right(self, row: AggregateAndTimestamp | None) -> None:
        """Open the window that begins just after the record, if something later is in it."""
        if row is not None and row[1] > self._timestamp:
            self._put(row, self._timestamp + 1)
            self._send(self._timestamp + 1, *row, None)

    def _put(self, row: AggregateAndTimestamp | None, start: int) -> None:
        self._store.put(self._key, row, start)
        if self._may_be_old and self._store.is_forgotten(start):
            self._drop()

    def _send(self, start: int, value: bytes | None, latest: int, old: bytes | None) -> None:
        self._forward(windowed_key(self._key, start), value, latest, self._headers, old)
