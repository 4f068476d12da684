"""Aggregation of a stream by key and session: records of a key with no gap between them are one session."""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

from streamskit.api.windows import SessionWindows
from streamskit.operators.aggregate import Aggregator
from streamskit.operators.bytes_timed_stores import BytesSessionStore, Session
from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import OperatorContext, ProcessRecord
from streamskit.operators.window_aggregate import AbstractWindowedAggregate

Merge = Callable[[bytes, list[Session]], Any]
"""Takes a key and its sessions that a record joins; returns the aggregate of all of them."""

Add = Callable[[int, bytes, bytes | None, Any], bytes | None]
"""Takes side, key, the record's value and the aggregate of the sessions that it joins; returns the new aggregate."""


@dataclass(frozen=True)
class SessionAggregateOperator(AbstractWindowedAggregate):
    """Session-window aggregation: one aggregate for each key and session.

    A result's key is the key, then the session's end and its start. A session that grows or merges with another sends a
    tombstone first. A record without a key is dropped, and so is one whose session has closed.
    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamSessionWindowAggregate`.

    Args:
        windows: the sessions' gap and grace.
        merger: merges the aggregates of two sessions: called with key, one aggregate, the other; needed unless
            `counting`. The other arguments are those of `AbstractWindowedAggregate`.
    """

    windows: SessionWindows
    merger: Aggregator | None = None

    def open(self, context: OperatorContext) -> ProcessRecord:
        store = BytesSessionStore(context, self.name, self.retention, by_time=self.on_close)
        gap, grace, memory, drop = self.windows.gap, self.windows.grace, context.memory, context.drop
        merge, add = (_sum, _one_more) if self.counting else self._merge_and_add()
        forward, stream_times = self.forward_updates(context), self.stream_times(context)
        emit_closed = self.emit_closed(
            context,
            lambda last: (
                (_session_key(key, start, end), value, end) for key, (end, start, value) in store.take_closed(last)
            ),
        )
        is_cached = context.is_cached
        # Another stream of a cogroup may have advanced the store so far that it has deleted the segment of a session.
        may_be_old = len(self.inputs) > 1 and not is_cached

        def process(side: int, record: OperatorRecord) -> None:
            key, data, _, _, timestamp, headers = record
            if key is None:
                return drop()
            name = stream_times[side]
            stream_time = memory[name]
            if timestamp > stream_time:
                stream_time = memory[name] = timestamp
            closed = stream_time - grace - gap
            sessions = store.find_sessions(key, timestamp - gap, timestamp + gap)
            merged = merge(key, sessions)
            start = end = timestamp
            for other_end, other_start, _ in sessions:
                start, end = min(start, other_start), max(end, other_end)
            # Unlike other results, Kafka Streams sends those of sessions without record headers, except from a cache.
            own_headers = headers if is_cached else None
            if end < closed:
                drop()
            else:
                # A session that consists of just this point in time keeps its bounds: there is nothing to retract.
                if start != end:
                    for other_end, other_start, old in sessions:
                        store.remove(key, other_start, other_end)
                        forward(_session_key(key, other_start, other_end), None, other_end, own_headers, old)
                new = add(side, key, data, merged)
                store.put(key, start, end, new)
                if may_be_old and store.is_forgotten(end):
                    drop()
                forward(_session_key(key, start, end), new, end, own_headers)
            return emit_closed(closed - 1, headers) if emit_closed else None

        return process

    def _merge_and_add(self) -> tuple[Merge, Add]:
        read_key, read, write = self.key.deserialize, self.result.deserialize, self.result.serialize
        deserializers = self.deserializers()
        initializer, aggregators, merger = self.initializer, self.aggregators, self.merger
        if merger is None:
            raise ValueError(f"{self.name}: sessions need a merger, which joins the aggregates of two of them.")

        def merge(data_key: bytes, sessions: list[Session]) -> Any:
            aggregate = None if initializer is None else initializer()
            for _, _, before in sessions:
                is_first = aggregate is None and initializer is None
                aggregate = read(before) if is_first else merger(read_key(data_key), aggregate, read(before))
            return aggregate

        def add(side: int, data_key: bytes, data: bytes | None, aggregate: Any) -> bytes | None:
            value = None if data is None else deserializers[side](data)
            if aggregate is None and initializer is None:
                return write(value)
            return write(aggregators[side](read_key(data_key), value, aggregate))

        return merge, add


def _sum(key: bytes, sessions: list[Session]) -> int:
    count = 0
    for _, _, value in sessions:
        count += int.from_bytes(value, "big")
    return count


def _one_more(side: int, key: bytes, data: bytes | None, count: int) -> bytes:
    return (count + 1).to_bytes(8, "big")


_TIMES = Struct(">QQ").pack


def _session_key(key: bytes, start: int, end: int) -> bytes:
    return key + _TIMES(end, start)
