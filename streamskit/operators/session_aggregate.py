"""Aggregation of a stream by key and session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import SessionWindows
from streamskit.operators.aggregate import Aggregator, Folding
from streamskit.operators.records import OperatorRecord
from streamskit.operators.session_store import BytesSessionStore, Session
from streamskit.operators.stream_task import OperatorContext, Process
from streamskit.operators.throttle import Throttle
from streamskit.operators.window_aggregate import forwarding

Merge = Callable[[int, bytes, bytes | None, list[Session]], bytes | None]
"""Takes side, key, the record's value and the sessions it joins; returns the aggregate of all."""


@dataclass(frozen=True)
class SessionAggregateOperator(Folding):
    """Folds records into one aggregate for each key and session.

    A result's key is the key, then the session's end and its start. A session that grows or merges with another sends a
    tombstone first. A record without a key is dropped, and so is one whose session has closed. Mirrors
    `KStreamSessionWindowAggregate`.

    Args:
        merger: joins the aggregates of two sessions: called with key, one aggregate, the other. The arguments before
            are those of `Folding`.
        windows: the sessions' gap and grace.
        retention: how long the store finds a session, in milliseconds.
        on_close: whether a session's result goes out once, when it closes.
        counting: counts records in place of calling the functions, without a look at the values.
        logged: whether updates that wait for their session to close come out at once too, for the store's changelog.
    """

    merger: Aggregator | None
    windows: SessionWindows
    retention: int
    on_close: bool = False
    counting: bool = False
    logged: bool = False

    @property
    def folds(self) -> bool:
        return not self.on_close

    def open(self, task: OperatorContext) -> Process:
        store = BytesSessionStore(task, self.name, self.retention, by_time=self.on_close)
        gap, grace, on_close = self.windows.gap, self.windows.grace, self.on_close
        memory, drop = task.memory, task.drop
        forward = forwarding(task, on_close, self.logged)
        merge = _count if self.counting else self._merge()
        emit_closed = _final_results(task, store)
        memory.setdefault("stream time", -1)

        def process(side: int, record: OperatorRecord) -> None:
            key, data, _, _, timestamp, headers = record
            if key is None:
                return drop()
            if timestamp > memory["stream time"]:
                memory["stream time"] = timestamp
            closed = memory["stream time"] - grace - gap
            found = store.find_sessions(key, timestamp - gap, timestamp + gap)
            start = end = timestamp
            for other_end, other_start, _ in found:
                start, end = min(start, other_start), max(end, other_end)
            if end < closed:
                drop()
            else:
                # A session that is just this point in time keeps its bounds: nothing to take back.
                if start != end:
                    for other_end, other_start, old in found:
                        store.remove(key, other_start, other_end)
                        forward(_session_key(key, other_start, other_end), None, other_end, None, old)
                new = merge(side, key, data, found)
                store.put(key, start, end, new)
                # Unlike other results, Kafka Streams makes those of sessions without the record's headers.
                forward(_session_key(key, start, end), new, end, None)
            return emit_closed(closed - 1, headers) if on_close else None

        return process

    def _merge(self) -> Merge:
        read_key, read, write, readers = (
            self.key.deserialize, self.result.deserialize, self.result.serialize, self.readers(),
        )  # fmt: skip
        initializer, aggregators, merger = self.initializer, self.aggregators, self.merger
        if merger is None:
            raise ValueError(f"{self.name}: sessions need a merger, which joins the aggregates of two of them.")

        def merge(side: int, data_key: bytes, data: bytes | None, sessions: list[Session]) -> bytes | None:
            key, value = read_key(data_key), None if data is None else readers[side](data)
            is_reduce = initializer is None
            aggregate = initializer() if initializer is not None else None
            for _, _, before in sessions:
                other = read(before)
                aggregate = other if is_reduce and aggregate is None else merger(key, aggregate, other)
            if is_reduce and aggregate is None:
                return write(value)
            return write(aggregators[side](key, value, aggregate))

        return merge


def _count(side: int, key: bytes, data: bytes | None, sessions: list[Session]) -> bytes:
    return (1 + sum(int.from_bytes(session[2], "big") for session in sessions)).to_bytes(8, "big")


def _final_results(task: OperatorContext, store: BytesSessionStore) -> Callable[[int, Any], None]:
    """Return the function that passes on, once, the results of sessions that end no later than a time."""
    forward, throttle = task.forward, Throttle(task)

    def emit_closed(last_end: int, headers: Any) -> None:
        if throttle.lets_pass():
            for key, (end, start, value) in store.take_closed(last_end):
                forward(_session_key(key, start, end), value, end, headers)

    return emit_closed


def _session_key(key: bytes, start: int, end: int) -> bytes:
    return key + end.to_bytes(8, "big") + start.to_bytes(8, "big")
