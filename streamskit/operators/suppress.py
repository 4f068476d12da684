"""A table whose updates are held back: until a window closes, or for a time."""

from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import AnyWindows, SessionWindows
from streamskit.common.errors import StreamsError
from streamskit.operators.records import OperatorRecord
from streamskit.operators.stores import BytesKeyValueStore
from streamskit.operators.stream_task import Operator, OperatorContext, Process
from streamskit.operators.timeline import Entry, Timeline, width_for

CONTEXT_BYTES = 20
"""What Kafka Streams counts in its buffer for a record's timestamp, offset and partition."""


@dataclass(frozen=True)
class SuppressOperator(Operator):
    """Holds back the updates of a table, so that of a key's updates only the last one goes out.

    Mirrors `KTableSuppressProcessorSupplier`.

    Args:
        name: the node's name.
        windows: those of the table's keys; needed when updates wait for their window to close.
        time_limit: how long updates wait, in milliseconds of stream time from the first of a key on; None is until the
            key's window closes: there deletions do not go out.
        max_records: how many keys may wait; None is any number.
        max_bytes: how many bytes may wait; None is any number.
        emit_early: whether a full buffer passes its oldest update on; it is an error otherwise.
    """

    name: str
    windows: AnyWindows | None = None
    time_limit: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    emit_early: bool = False

    def open(self, task: OperatorContext) -> Process:
        buffer = _Buffer(task, self._wait(), keeps_place=self.time_limit is not None)
        memory, drop, forward, emit_early = task.memory, task.drop, task.forward, self.emit_early
        wait, until_close = self._wait(), self.time_limit is None
        max_records, max_bytes = self.max_records, self.max_bytes
        memory.setdefault("stream time", -1)

        def is_full() -> bool:
            return (max_records is not None and memory["records"] > max_records) or (
                max_bytes is not None and memory["bytes"] > max_bytes
            )

        def emit() -> None:
            key, (value, old, _, timestamp, headers) = buffer.take_first()
            if value is not None or not until_close:
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
        """How long after an entry's time it goes out."""
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
            f"{memory[what]:,} {what} where {most:,} may be"
            for what, most in (("records", self.max_records), ("bytes", self.max_bytes))
            if most is not None
        ]
        return (
            f"{self.name}: the buffer of suppress() is full, with {' and '.join(limits)}. "
            "Let it hold more, or let it pass its oldest updates on: emit_early_when_full()."
        )


class _Buffer:
    """Updates that wait, one for each key, in the order of the time with which their key first came in, then of key.

    Mirrors `org.apache.kafka.streams.state.internals.InMemoryTimeOrderedKeyValueChangeBuffer`.

    Args:
        task: the task whose state it is part of.
        wait: how long an update may wait, in milliseconds.
        keeps_place: whether a key's time differs from update to update, so that the first one has to be remembered.
    """

    def __init__(self, task: OperatorContext, wait: int, keeps_place: bool) -> None:
        self._timeline = Timeline(f"{task.name}/buffer", task.pages, width_for(wait))
        self._times = BytesKeyValueStore(task.table(task.name)) if keeps_place else None
        self._memory = task.memory
        self._memory.setdefault("records", 0)
        self._memory.setdefault("bytes", 0)
        self.first_time = self._timeline.first_time
        task.keep(self._timeline)

    def put(self, time: int, record: OperatorRecord) -> None:
        """Let an update wait, in the place of an earlier one of its key if there is one."""
        key, value, old, _, timestamp, headers = record
        if key is None:
            return
        first_came = None if self._times is None else self._times.put_if_absent(key, time)
        entry: Entry = (time if first_came is None else first_came, key)
        memory = self._memory
        earlier = self._timeline.get(entry)
        if earlier is None:
            memory["records"] += 1
        else:
            memory["bytes"] -= _size(key, earlier)
        update = (value, old, old if earlier is None else earlier[2], timestamp, headers)
        memory["bytes"] += _size(key, update)
        self._timeline.put(entry, update)

    def take_first(self) -> tuple[bytes, Any]:
        """Return key and update of the first entry; it waits no more."""
        entry = self._timeline.first() or ()
        update, key = self._timeline.pop(entry), entry[1]
        if self._times is not None:
            self._times.delete(key)
        self._memory["records"] -= 1
        self._memory["bytes"] -= _size(key, update)
        return key, update


def _size(key: bytes, update: tuple[Any, ...]) -> int:
    """Return how many bytes Kafka Streams counts for an update, but for its topic's name and its headers."""
    value, old, before, _, _ = update
    values = len(value or b"") + len(before or b"") + (0 if old is before else len(old or b""))
    return 8 + len(key) + values + CONTEXT_BYTES
