"""A join of two streams: records of the same key that are close in time."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import JoinWindows
from streamskit.operators.bytes_timed_stores import SEGMENT
from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import Forward, Operator, OperatorContext, ProcessRecord

BufferedRecord = tuple[int, bytes]
"""Timestamp and value of a record that may still find a match."""


@dataclass(frozen=True)
class StreamJoinOperator(Operator):
    """Stream-stream join: joins each record with those of the other stream that have its key and are in its window.

    `value` of the output is the left record's, `other` the right one's; its time is the later of the two. In an outer
    join a record without a match waits until its window has closed, and is then emitted alone with its own time. A
    record without key or value is dropped; but where its side is outer, one without a key is emitted alone at once.
    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamKStreamJoin`.

    Args:
        name: the node's name.
        windows: how far apart two records may be.
        outer: for the left and for the right stream, whether its records are emitted without a match.
    """

    name: str
    windows: JoinWindows
    outer: tuple[bool, bool]

    def open(self, context: OperatorContext) -> ProcessRecord:
        windows, outer, memory, drop = self.windows, self.outer, context.memory, context.drop
        unmatched = _OuterJoinStore(context, windows, both=outer[1]) if any(outer) else None
        stores = tuple(_JoinStore(context, f"{self.name}/{side}", windows) for side in ("left", "right"))
        reach = ((windows.before_ms, windows.after_ms), (windows.after_ms, windows.before_ms))
        send = _sender(context.forward)
        memory.setdefault("stream time", -1)

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, _, timestamp, headers = record
            if timestamp > memory["stream time"]:
                memory["stream time"] = timestamp
            if value is None or (key is None and not outer[side]):
                return drop()
            if key is None:
                return send(side, key, value, None, timestamp, headers)
            before, after = reach[side]
            if unmatched is not None and timestamp == memory["stream time"]:
                unmatched.emit_closed(timestamp, after, headers)
            matches = stores[1 - side].fetch(key, max(0, timestamp - before), max(0, timestamp + after))
            for other_timestamp, other in matches:
                if unmatched is not None:
                    unmatched.remove(other_timestamp, 1 - side, key)
                send(side, key, value, other, max(timestamp, other_timestamp), headers)
            if not matches and unmatched is not None and outer[side]:
                if max(0, timestamp + after) < memory["stream time"]:
                    send(side, key, value, None, timestamp, headers)
                else:
                    unmatched.add(timestamp, side, key, value)
            # Only now: a stream that is joined with itself does not meet its own record twice.
            return None if stores[side].put(key, value, timestamp) else drop()

        return process


def _sender(forward: Forward) -> Callable[[int, bytes | None, bytes, bytes | None, int, Any], None]:
    """Return the function that passes on a value of one side and its match, the left one first."""

    def send(side: int, key: bytes | None, value: bytes, match: bytes | None, timestamp: int, headers: Any) -> None:
        if side == 0:
            forward(key, value, timestamp, headers, None, match)
        else:
            forward(key, match, timestamp, headers, None, value)

    return send


class _JoinStore:
    """Window store of one stream: for each key the records that may still find a match, in order of time.

    Mirrors the store of `KStreamKStreamJoin`, a `WindowStore` that retains duplicates.
    """

    def __init__(self, context: OperatorContext, name: str, windows: JoinWindows) -> None:
        self._table, self._memory = context.table(name, self._expire), context.task.memory.of(name)
        self._retention, self._segment = windows.retention, max(windows.retention // 2, SEGMENT)
        self._memory.setdefault("latest", -1)

    def fetch(self, key: bytes, first: int, last: int) -> list[BufferedRecord]:
        """Return the records of a key between two times, both included."""
        records: list[BufferedRecord] | None = self._table.page(key).get(key)
        if records is None:
            return []
        first = max(first, self._memory["latest"] - self._retention + 1)
        return records[bisect_left(records, (first,)) : bisect_left(records, (last + 1,))]

    def put(self, key: bytes, value: bytes, timestamp: int) -> bool:
        """Keep a record; return False if it is older than what Kafka Streams keeps."""
        memory = self._memory
        if timestamp > memory["latest"]:
            memory["latest"] = timestamp
        expired = memory["latest"] - self._retention
        if timestamp <= expired:
            # Kafka Streams deletes records in segments: it counts as dropped only those whose segment is gone.
            return bool(timestamp // self._segment >= expired // self._segment)
        rows = self._table.changed_page(key)
        records: list[BufferedRecord] | None = rows.get(key)
        if records is None:
            rows[key] = [(timestamp, value)]
            return True
        if records[0][0] <= expired:
            del records[: bisect_left(records, (expired + 1,))]
        if not records or records[-1][0] <= timestamp:
            records.append((timestamp, value))
        else:
            records.insert(bisect_left(records, (timestamp + 1,)), (timestamp, value))
        return True

    def _expire(self, records: list[BufferedRecord]) -> None:
        oldest = self._memory["latest"] - self._retention + 1
        del records[: bisect_left(records, (oldest,))]


class _OuterJoinStore:
    """Outer-join store: records without a match so far, in the order of time, side (the right one first) and key.

    Mirrors the shared outer-join store of `KStreamKStreamJoin`, a `TimestampedKeyAndJoinSide` store, and its
    `TimeTracker`.

    Args:
        context: the join's.
        windows: the join's.
        both: whether it may hold records of both sides, or left ones only.
    """

    def __init__(self, context: OperatorContext, windows: JoinWindows, both: bool) -> None:
        self._records = context.time_ordered_map(f"{context.name}/waiting", windows.retention)
        self._context, self._memory, self._windows, self._both = context, context.memory, windows, both
        # The time of the oldest record as of the last look; None stands for "later than any time".
        self._memory.setdefault("oldest", None)

    def add(self, timestamp: int, side: int, key: bytes, value: bytes) -> None:
        """Add a record; several of one key and time are one entry."""
        entry = (timestamp, 1 - side, key)
        self._records.put(entry, [*(self._records.get(entry) or ()), value])
        oldest = self._memory["oldest"]
        self._memory["oldest"] = timestamp if oldest is None else min(oldest, timestamp)

    def remove(self, timestamp: int, side: int, key: bytes) -> None:
        """Remove the records of a key and time, which have found a match."""
        if self._records.first_time() is not None:
            self._records.pop((timestamp, 1 - side, key))

    def emit_closed(self, stream_time: int, after: int, headers: Any) -> None:
        """Emit the records whose window has closed.

        Args:
            stream_time: of both streams together.
            after: how far the window of the side that is being processed reaches forward.
            headers: of the record that is being processed.
        """
        if not self._may_be_due(stream_time, after) or not self._context.may_emit():
            return
        self._memory["oldest"] = None
        after_ms, before_ms, grace = self._windows.after_ms, self._windows.before_ms, self._windows.grace
        # Sides that have reached a record whose window is open have no more to emit. A left join has one side only.
        is_open = [not self._both, False]
        for entry in self._records.in_order():
            timestamp, is_left, key = entry
            self._memory["oldest"] = timestamp
            if all(is_open):
                if not self._both:
                    self._memory["oldest"] = self._records.last_time()
                return
            if timestamp + (after_ms if is_left else before_ms) + grace >= stream_time:
                is_open[is_left] = True
                continue
            for value in self._records.pop(entry):
                left, right = (value, None) if is_left else (None, value)
                self._context.forward(key, left, timestamp, headers, None, right)

    def _may_be_due(self, stream_time: int, after: int) -> bool:
        oldest, grace = self._memory["oldest"], self._windows.grace
        if oldest is None:
            # Kafka Streams adds to the largest number there is, which makes it the smallest.
            return after + grace > 0
        return bool(oldest + after + grace < stream_time)
