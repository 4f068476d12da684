"""Sliding windows: each record opens one that ends at it, and one that begins just after it."""

from collections.abc import Callable
from typing import Any

from streamskit.api.windows import SlidingWindows
from streamskit.operators.aggregate import Reader, Step
from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import Forward, OperatorContext
from streamskit.operators.window_store import BytesWindowStore

Row = tuple[bytes | None, int]
"""A window's aggregate and the largest timestamp in it."""


class SlidingProcess:
    """Updates the sliding windows that hold a record, and creates those that it opens.

    Windows could begin anywhere; only those are kept that differ in what they hold. For a record at t that is the left
    one, [t - difference, t], and, once something later falls into it, the right one, [t + 1, t + 1 + difference]. A new
    window takes over the aggregate of its neighbour where both hold the same records.
    Mirrors `KStreamSlidingWindowAggregate`.
    """

    def __init__(
        self, windows: SlidingWindows, task: OperatorContext, store: BytesWindowStore, readers: list[Reader],
        step: Step, forward: Forward, emit_closed: Callable[[int, Any], None] | None,
    ) -> None:  # fmt: skip
        self._difference, self._grace = windows.time_difference, windows.grace
        self._store, self._readers, self._step = store, readers, step
        self._forward, self._emit_closed, self._drop = forward, emit_closed, task.drop
        self._memory, self._is_cached = task.memory, task.is_cached
        self._memory.setdefault("stream time", -1)

    def __call__(self, side: int, record: OperatorRecord) -> None:
        """Process one record."""
        key, data, _, _, timestamp, headers = record
        value = None if data is None else self._readers[side](data)
        if key is None or value is None:
            return self._drop()
        stream_time = self._memory["stream time"] = max(self._memory["stream time"], timestamp)
        self._closed = stream_time - self._grace
        if timestamp + self._difference < self._closed:
            return self._drop()
        self._side, self._key, self._value, self._timestamp, self._headers = side, key, value, timestamp, headers
        if timestamp < self._difference:
            return self._early()
        self._late_enough()
        if self._emit_closed is not None:
            self._emit_closed(self._closed - self._difference - 1, headers)
        return None

    def _late_enough(self) -> None:
        """Update and create windows, none of which would start before 0."""
        now, difference = self._timestamp, self._difference
        found = self._store.fetch_range(self._key, max(0, now - 2 * difference), now + 1)
        left = right = previous = None
        has_left = has_right = False
        starts = {start for start, _ in found}
        for start, row in reversed(found):
            if start == now + 1:
                has_right = True
            elif start + difference > now:
                right = right or row
                self._update(start, row)
            elif start + difference == now:
                has_left = True
                self._update(start, row)
                if row[1] >= now:
                    return
                previous = row[1]
            else:
                left, previous = row, row[1]
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + difference >= now:
            self._update(previous + 1, None)
        if not has_left:
            reaches_back = previous is not None and left is not None and now - difference <= previous
            self._update(now - difference, (left[0], now) if reaches_back and left else None, is_new=True)
        if not has_right:
            self._open_right(right)

    def _early(self) -> None:
        """Update and create windows for a record so early that its left one would start before 0.

        All such records share the window [0, difference].
        """
        now, right, combined, previous = self._timestamp, None, None, None
        found = self._store.fetch_range(self._key, 0, now + 1)
        starts = {start for start, _ in found}
        for start, row in found:
            if start == 0:
                combined = row
                previous = row[1] if row[1] < now else None
            elif start <= now:
                right = row
                self._update(start, row)
        if now + 1 not in starts:
            self._open_right(right or (combined if combined is not None and combined[1] > now else None))
        if previous is not None and previous + 1 not in starts:
            self._update(previous + 1, None)
        self._update(0, combined)

    def _update(self, start: int, row: Row | None, is_new: bool = False) -> None:
        """Fold the record into a window whose aggregate so far is in `row`; None is a window without records yet."""
        if start + self._difference < self._closed:
            return self._drop()
        aggregate, latest = row or (None, self._timestamp)
        old, new = self._step(self._side, self._key, self._value, aggregate)
        latest = max(latest, self._timestamp)
        self._store.put(self._key, None if new is None else (new, latest), start)
        return self._send(start, new, latest, None if is_new and self._is_cached else old)

    def _open_right(self, row: Row | None) -> None:
        """Open the window that begins just after the record, if something later is in it."""
        if row is not None and row[1] > self._timestamp:
            self._store.put(self._key, row, self._timestamp + 1)
            self._send(self._timestamp + 1, *row, None)

    def _send(self, start: int, value: bytes | None, latest: int, old: bytes | None) -> None:
        self._forward(self._key + start.to_bytes(8, "big"), value, latest, self._headers, old)
