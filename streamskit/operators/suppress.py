"""Suppression: a table whose updates are held back, until a window closes or for a time."""

from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import AnyWindows, SessionWindows
from streamskit.common.errors import StreamsError
from streamskit.operators.bytes_stores import BytesKeyValueStore
from streamskit.operators.paged_state import Entry
from streamskit.operators.records import NO_SOURCE, OperatorRecord, iterable
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord

CONTEXT_BYTES = 20
"""What Kafka Streams counts in its buffer for a record's timestamp, offset and partition."""


@dataclass(frozen=True)
class SuppressOperator(Operator):
    """Suppression: buffers the updates of a table, so that only the last of a key's updates is emitted.

    Mirrors `org.apache.kafka.streams.kstream.internals.suppress.KTableSuppressProcessorSupplier`.

    Args:
        name: the node's name.
        windows: those of the table's keys; needed when updates wait for their window to close.
        time_limit: how long updates wait, in milliseconds of stream time from the first of a key on; None means until
            the key's window closes; deletions are then not emitted.
        max_records: how many keys the buffer may hold; None means no limit.
        max_bytes: how many bytes the buffer may hold; None means no limit.
        emit_early: whether a full buffer emits its oldest update; otherwise that is an error.
    """

    name: str
    windows: AnyWindows | None = None
    time_limit: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    emit_early: bool = False

    def open(self, context: OperatorContext) -> ProcessRecord:
        wait, until_close, emit_early = self._wait(), self.time_limit is None, self.emit_early
        buffer = _SuppressionBuffer(context, wait, keep_first_time=not until_close)
        task, memory, drop, forward = context.task, context.memory, context.drop, context.forward
        max_records, max_bytes = self.max_records, self.max_bytes
        memory.setdefault("stream time", -1)

        def is_full() -> bool:
            return (max_records is not None and memory["records"] > max_records) or (
                max_bytes is not None and memory["bytes"] > max_bytes
            )

        def emit() -> None:
            key, (value, old, _, timestamp, headers, *source) = buffer.take_first()
            if value is not None or not until_close:
                with task.made_from(source[0] if source else task.source):
                    forward(key, value, timestamp, headers, old)

        def process(side: int, record: OperatorRecord) -> None:
            key, timestamp = record.key, record.timestamp
            if key is None:
                return drop()
            stream_time = memory["stream time"] = max(memory["stream time"], timestamp)
            buffer.put(self._window_end(key) if until_close else timestamp, record)
            time = buffer.first_time()
            while time is not None and time <= stream_time - wait:
                emit()
                time = buffer.first_time()
            while is_full():
                if not emit_early:
                    raise StreamsError(self._full(memory))
                emit()
            return None

        return process

    def _wait(self) -> int:
        """How long after its time an entry is emitted."""
        if self.time_limit is not None:
            return self.time_limit
        if self.windows is None:
            raise ValueError(f"{self.name}: to wait until windows close, say which windows: windows=...")
        gap = self.windows.gap if isinstance(self.windows, SessionWindows) else 0
        return self.windows.grace + gap

    def _window_end(self, key: bytes) -> int:
        if isinstance(self.windows, SessionWindows):
            return int.from_bytes(key[-16:-8], "big", signed=True)
        size = 0 if self.windows is None else self.windows.size
        return int.from_bytes(key[-8:], "big", signed=True) + size

    def _full(self, memory: dict[str, Any]) -> str:
        limits = [
            f"{memory[unit]:,} {unit} where {limit:,} may be"
            for unit, limit in (("records", self.max_records), ("bytes", self.max_bytes))
            if limit is not None
        ]
        other = "let windows close sooner: a shorter grace"
        if self.time_limit is not None:
            other = "let it pass its oldest updates on: emit_early_when_full()"
        return (
            f"{self.name}: the buffer of suppress() is full, with {' and '.join(limits)}. Let it hold more, or {other}."
        )


class _SuppressionBuffer:
    """Suppression buffer: one update for each key, in the order of the time of the key's first update, then of key.

    An update is kept with the record that it was made from, if the task knows it.
    Mirrors `org.apache.kafka.streams.state.internals.InMemoryTimeOrderedKeyValueChangeBuffer`.

    Args:
        context: of the operator whose state it is part of.
        wait: how long an update may wait, in milliseconds.
        keep_first_time: whether a key's time differs from update to update, so that the first one has to be kept.
    """

    def __init__(self, context: OperatorContext, wait: int, keep_first_time: bool) -> None:
        self._updates = context.time_ordered_map(f"{context.name}/buffer", wait)
        self._first_times = BytesKeyValueStore(context.table(context.name)) if keep_first_time else None
        self._task, self._memory = context.task, context.memory
        self._memory.setdefault("records", 0)
        self._memory.setdefault("bytes", 0)
        self.first_time = self._updates.first_time

    def put(self, time: int, record: OperatorRecord) -> None:
        """Add an update, in the place of an earlier one of its key if there is one."""
        key, value, old, _, timestamp, headers = record
        if key is None:
            return
        first_time = None if self._first_times is None else self._first_times.put_if_absent(key, time)
        entry: Entry = (time if first_time is None else first_time, key)
        memory = self._memory
        earlier = self._updates.get(entry)
        if earlier is None:
            memory["records"] += 1
        else:
            memory["bytes"] -= _size(key, earlier)
        source = () if self._task.source is NO_SOURCE else (self._task.source,)
        update = (value, old, old if earlier is None else earlier[2], timestamp, headers, *source)
        memory["bytes"] += _size(key, update)
        self._updates.put(entry, update)

    def take_first(self) -> tuple[bytes, Any]:
        """Remove the first update and return it with its key."""
        entry = self._updates.first() or ()
        update, key = self._updates.pop(entry), entry[1]
        if self._first_times is not None:
            self._first_times.delete(key)
        self._memory["records"] -= 1
        self._memory["bytes"] -= _size(key, update)
        return key, update


def _size(key: bytes, update: tuple[Any, ...]) -> int:
    """Return how many bytes Kafka Streams counts for an update, apart from its topic's name."""
    value, old, before, _, headers = update[:5]
    values = len(value or b"") + len(before or b"") + (0 if old is before else len(old or b""))
    named = sum(len(header["key"]) + len(header["value"] or b"") for header in iterable(headers))
    return 8 + len(key) + values + named + CONTEXT_BYTES
