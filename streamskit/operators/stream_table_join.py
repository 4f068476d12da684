"""A join of a stream with a table, or a global table: each record looks up a row."""

from collections.abc import Callable
from dataclasses import dataclass

from streamskit.operators.bytes_stores import BytesKeyValueStore, BytesVersionedStore
from streamskit.operators.bytes_timed_stores import RowRetention, rows_of_table
from streamskit.operators.records import NO_SOURCE, OperatorRecord, SourceRecord
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessBatch, ProcessRecord


@dataclass(frozen=True)
class StreamTableJoinOperator(Operator):
    """Stream-table join: joins each record of a stream (side 0) with the row that a table (side 1) has for its key.

    A stream's record without a value is dropped; one without a key to look up is also dropped, except in a left join
    (KIP-962). `other` of the output is the row.
    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamKTableJoinProcessor` and, with `by_extra`,
    `KStreamGlobalKTableJoin`.

    Args:
        name: the node's name.
        left: whether records without a row are passed on.
        history: the table's, in milliseconds: the row as of the record's time is taken; None takes the current row.
        grace: how long records wait for the table, in milliseconds of stream time; None joins them at once.
        by_extra: looks up `record.extra` instead of the key.
        retention: for how long the rows of a table with windows can be looked up.
    """

    name: str
    left: bool
    history: int | None = None
    grace: int | None = None
    by_extra: bool = False
    retention: RowRetention | None = None

    @property
    def takes_batches(self) -> bool:
        return self.history is None and self.grace is None and self.retention is None

    def open_batch(self, context: OperatorContext) -> ProcessBatch:
        from streamskit.operators import latest_row_lookup  # which needs Arrow

        table = BytesKeyValueStore(context.table(context.name))
        return latest_row_lookup.joining(table, context.drop, left=self.left, by_extra=self.by_extra)

    def open(self, context: OperatorContext) -> ProcessRecord:
        forward, drop, left, by_extra, task = context.forward, context.drop, self.left, self.by_extra, context.task
        put, get = _latest_rows(context, self.retention)
        if self.history is not None:
            put, get = _versions(context, self.history)
        buffer = None if self.grace is None else _StreamBuffer(context, self.grace)

        def join(record: OperatorRecord) -> None:
            key, value, _, extra, timestamp, headers = record
            lookup_key = extra if by_extra else key
            row = None if lookup_key is None else get(lookup_key, timestamp)
            if row is not None or left:
                forward(key, value, timestamp, headers, None, row)

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, extra, timestamp, _ = record
            if side == 1:
                return drop() if key is None or not put(key, value, timestamp) else None
            lookup_key = extra if by_extra else key
            if value is None or (lookup_key is None and not left):
                return drop()
            if buffer is None or key is None or not buffer.add(record):
                return join(record)
            for buffered, source in buffer.take_due():
                with task.made_from(source or task.source):
                    join(buffered)
            return None

        return process


Put = Callable[[bytes, bytes | None, int], bool]
"""Sets a row from a time on; returns False if that is too long ago."""

Get = Callable[[bytes, int], bytes | None]
"""Returns the row of a key at a time."""


def _latest_rows(context: OperatorContext, retention: RowRetention | None) -> tuple[Put, Get]:
    """Return how to put and get rows of which only the latest value is kept."""
    rows = rows_of_table(context, context.name, retention)

    def put(key: bytes, value: bytes | None, timestamp: int) -> bool:
        rows.put(key, value)
        return True

    return put, lambda key, timestamp: rows.get(key)


def _versions(context: OperatorContext, history: int) -> tuple[Put, Get]:
    """Return how to put and get rows by time."""
    store = BytesVersionedStore(context, context.name, history)
    return lambda key, value, timestamp: store.put(key, value, timestamp).is_kept, store.get


class _StreamBuffer:
    """Buffer of a join with grace period: records wait for the table, in the order of time, key and arrival.

    Each is kept with the record of the task's topics that it was made from, if the task knows it.
    Mirrors `org.apache.kafka.streams.state.internals.RocksDBTimeOrderedKeyValueBuffer`.
    """

    def __init__(self, context: OperatorContext, grace: int) -> None:
        self._records = context.time_ordered_map(f"{context.name}/buffer", grace)
        self._task, self._memory, self._grace = context.task, context.memory, grace
        self._memory.setdefault("stream time", -1)
        self._memory.setdefault("arrivals", 0)

    def add(self, record: OperatorRecord) -> bool:
        """Add a record; return False if its grace period is over already."""
        memory = self._memory
        if record.timestamp < memory["stream time"] - self._grace:
            return False
        memory["stream time"] = max(memory["stream time"], record.timestamp)
        memory["arrivals"] += 1
        source = () if self._task.source is NO_SOURCE else (self._task.source,)
        self._records.put((record.timestamp, record.key, memory["arrivals"]), (*record, *source))
        return True

    def take_due(self) -> list[tuple[OperatorRecord, SourceRecord | None]]:
        """Remove and return the records whose grace period is over, each with what it was made from."""
        due, width = self._memory["stream time"] - self._grace, len(OperatorRecord._fields)
        found = [kept for _, kept in self._records.take_until(due)]
        return [(OperatorRecord(*kept[:width]), kept[width] if len(kept) > width else None) for kept in found]
