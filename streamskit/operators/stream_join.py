"""A join of two streams: records of the same key that are close in time."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import JoinWindows
from streamskit.operators.outer_join_buffer import OuterJoinBuffer
from streamskit.operators.pages import Rows
from streamskit.operators.records import OperatorRecord
from streamskit.operators.session_store import SEGMENT
from streamskit.operators.stream_task import Forward, Operator, OperatorContext, Process


@dataclass(frozen=True)
class StreamJoinOperator(Operator):
    """Joins each record with those of the other stream that have its key and are within the window.

    `value` of the output is the left record's, `other` the right one's; its time is the later of the two. In an outer
    join a record without a match waits until its window has closed, then goes out alone with its own time. A record
    without key or value is dropped; but where its side is outer, one without a key goes out alone at once.
    Mirrors `KStreamKStreamJoin`.

    Args:
        name: the node's name.
        windows: how far apart two records may be.
        outer: for the left and for the right stream whether its records go out without a match.
    """

    name: str
    windows: JoinWindows
    outer: tuple[bool, bool]

    def open(self, task: OperatorContext) -> Process:
        windows, outer, memory, drop = self.windows, self.outer, task.memory, task.drop
        waiting = OuterJoinBuffer(task, windows, both=outer[1]) if any(outer) else None
        stores = (_Side(task, f"{self.name}/left", windows), _Side(task, f"{self.name}/right", windows))
        reach = ((windows.before_ms, windows.after_ms), (windows.after_ms, windows.before_ms))
        send = _sender(task.forward)
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
            if waiting is not None and timestamp == memory["stream time"]:
                waiting.emit_closed(timestamp, after, headers)
            matches = stores[1 - side].fetch(key, timestamp - before, timestamp + after)
            for other_timestamp, other in matches:
                if waiting is not None:
                    waiting.remove(other_timestamp, 1 - side, key)
                send(side, key, value, other, max(timestamp, other_timestamp), headers)
            if not matches and waiting is not None and outer[side]:
                if max(0, timestamp + after) < memory["stream time"]:
                    send(side, key, value, None, timestamp, headers)
                else:
                    waiting.add(timestamp, side, key, value)
            # Only now: a stream that is joined with itself does not meet its own record twice.
            return None if stores[side].put(key, value, timestamp) else drop()

        return process


Send = Callable[[int, bytes | None, bytes, bytes | None, int, Any], None]


def _sender(forward: Forward) -> Send:
    """Return the function that passes on a value of one side and its match, the left one first."""

    def send(side: int, key: bytes | None, value: bytes, match: bytes | None, timestamp: int, headers: Any) -> None:
        if side == 0:
            forward(key, value, timestamp, headers, None, match)
        else:
            forward(key, match, timestamp, headers, None, value)

    return send


class _Side:
    """The records of one stream that may still find a match: for each key timestamps and values, in order of time."""

    def __init__(self, task: OperatorContext, name: str, windows: JoinWindows) -> None:
        self._table, self._memory = task.table(name, self._clean), task.memory_of(name)
        self._retention = windows.retention
        self._segment = max(windows.retention // 2, SEGMENT)
        self._memory.setdefault("latest", -1)

    def fetch(self, key: bytes, first: int, last: int) -> list[tuple[int, bytes]]:
        """Return the records of a key between two times, both included."""
        records = self._table.look_at(key).get(key)
        if records is None:
            return []
        first = max(first, self._memory["latest"] - self._retention + 1)
        begin, end = bisect_left(records, (first,)), bisect_left(records, (last + 1,))
        found: list[tuple[int, bytes]] = records[begin:end]
        return found

    def put(self, key: bytes, value: bytes, timestamp: int) -> bool:
        """Keep a record; return whether it is not older than what Kafka Streams keeps."""
        memory = self._memory
        if timestamp > memory["latest"]:
            memory["latest"] = timestamp
        expired = memory["latest"] - self._retention
        if timestamp <= expired:
            # Kafka Streams forgets records in segments: it counts only those as dropped whose segment is gone.
            return bool(timestamp // self._segment >= expired // self._segment)
        rows = self._table.change(key)
        records = rows.get(key)
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

    def _clean(self, rows: Rows) -> None:
        expired: Any = (self._memory["latest"] - self._retention + 1,)
        for key in list(rows):
            del rows[key][: bisect_left(rows[key], expired)]
            if not rows[key]:
                del rows[key]
