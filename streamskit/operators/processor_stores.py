"""State stores of processors: plain Python values over the tables of a task, with a changelog.

Mirrors Kafka Streams' metered stores (`MeteredKeyValueStore`, ...), which wrap change-logging and byte stores.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from streamskit.api.windows import SlidingWindows, TimeWindows, Windowed
from streamskit.common.errors import StreamsError
from streamskit.operators.bytes_stores import (
    BytesKeyValueStore,
    BytesLruStore,
    BytesSessionStore,
    BytesVersionedStore,
    BytesWindowStore,
)
from streamskit.operators.stream_task import OperatorContext
from streamskit.serdes import Serde
from streamskit.state.read_only import VersionedRecord
from streamskit.state.stores import KeyValue, Store, ValueAndTimestamp

FOREVER = 2**63 - 1

LATEST, TOO_OLD = -1, -(2**63)
"""What `put` of a versioned store returns for the latest version of a row, and for one that is too old to be kept."""

WriteChangelog = Callable[[bytes, bytes | None, int], None]
"""Writes a record to a changelog: key, value, timestamp."""


class ChangelogBuffer:
    """Changelog of a store: passes on each update, or with caching the last of each key when the micro-batch ends.

    Mirrors `org.apache.kafka.streams.state.internals.ChangeLoggingKeyValueBytesStore`, with caching behind a
    `CachingKeyValueStore`.

    Args:
        write: writes a record to the changelog topic.
        caching: whether only the last update of each key is written.
        now: returns the time of the record in hand, in milliseconds.
    """

    def __init__(self, write: WriteChangelog, caching: bool, now: Callable[[], int]) -> None:
        self._write, self._caching, self._now = write, caching, now
        self._latest: dict[bytes, tuple[bytes | None, int]] = {}

    def log(self, key: bytes, value: bytes | None, timestamp: int | None = None) -> None:
        """Log an update; its time is that of the record in hand unless another is given."""
        time = self._now() if timestamp is None else timestamp
        if self._caching:
            self._latest[key] = value, time
        else:
            self._write(key, value, time)

    def save(self) -> None:
        """Write what is cached."""
        for key, (value, time) in self._latest.items():
            self._write(key, value, time)
        self._latest.clear()


@dataclass(frozen=True)
class StoreAccess:
    """How a processor gets at a store: where its rows are, and what hears of its updates.

    Args:
        table: the name of the table of the task that holds the rows, which may be that of another operator.
        changelog: takes the updates; None if nobody wants to hear of them.
        refusal: why processors cannot change the store; empty where they can.
    """

    table: str
    changelog: ChangelogBuffer | None = None
    refusal: str = ""


class StateStore:
    """What all stores of a processor have in common: a name, the serdes of keys and values, and the changelog.

    Mirrors `org.apache.kafka.streams.processor.StateStore`.

    Args:
        store: its name, serdes and options.
        access: how to get at it.
    """

    name: str

    def __init__(self, store: Store, access: StoreAccess) -> None:
        self.name = store.name
        self._store, self._changelog, self._refusal = store, access.changelog, access.refusal
        self._write_value, self._read_value = _value_codec(store)

    def _key(self, key: Any) -> bytes:
        if key is None:
            raise StreamsError(f"Store '{self.name}': a row cannot have the key None. Leave such records out first.")
        return self._store.key.serialize(key) or b""

    def _log(self, key: bytes, value: Any, timestamp: int | None = None) -> None:
        """Log an update before it is made: one that is refused changes nothing."""
        if self._refusal:
            raise StreamsError(f"Store '{self.name}': {self._refusal}")
        if self._changelog is None:
            return
        if self._store.timestamped and value is not None:
            self._changelog.log(key, *value)
        else:
            self._changelog.log(key, value, timestamp)


class ProcessorKeyValueStore(StateStore):
    """Key-value store of a processor, in the order of the keys' bytes.

    Mirrors `org.apache.kafka.streams.state.KeyValueStore`, and `TimestampedKeyValueStore`, whose values are
    `ValueAndTimestamp`; with `max_entries` the store of `Stores.lruMap`.

    >>> class RunningTotal(Processor):
    ...     def process(self, record):
    ...         totals = self.context.state_store("totals")
    ...         totals.put(record.key, (totals.get(record.key) or 0) + 1)
    """

    def __init__(self, context: OperatorContext, store: Store, access: StoreAccess) -> None:
        super().__init__(store, access)
        size = store.max_entries
        self._rows: BytesKeyValueStore | BytesLruStore
        if size is None:
            self._rows = BytesKeyValueStore(context.table(access.table))
        else:
            self._rows = BytesLruStore(context, access.table, size, evicted=lambda key: self._log(key, None))

    def put_row(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a row of a table: its bytes, without the changelog."""
        self._rows.put(key, None if value is None else (value, timestamp))

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None if there is none."""
        return self._read_value(self._rows.get(self._key(key)))

    def put(self, key: Any, value: Any) -> None:
        """Set the value of `key`; None deletes it."""
        data, stored = self._key(key), self._write_value(value)
        self._log(data, stored)
        self._rows.put(data, stored)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of `key` if it has none; return the one it had, or None."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set the values of many keys, given as pairs."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Delete `key` and return the value it had, or None."""
        before = self.get(key)
        self.put(key, None)
        return before

    def range(self, first: Any, last: Any) -> Iterator[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included; None leaves an end open."""
        return self._decoded(self._range(first, last))

    def reverse_range(self, first: Any, last: Any) -> Iterator[KeyValue]:
        """Return the rows of `range`, the last key first."""
        return self._decoded(reversed([*self._range(first, last)]))

    def all(self) -> Iterator[KeyValue]:
        """Return every row."""
        return self.range(None, None)

    def reverse_all(self) -> Iterator[KeyValue]:
        """Return every row, the last key first."""
        return self.reverse_range(None, None)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[KeyValue]:
        """Return the rows whose keys' bytes begin with those of `prefix`.

        Args:
            prefix: what they begin with.
            serde: of the prefix; the keys' own by default.
        """
        start = (serde or self._store.key).serialize(prefix) or b""
        return self._decoded(row for row in self._rows.all() if row[0].startswith(start))

    def approximate_num_entries(self) -> int:
        """Return how many rows there are."""
        return sum(1 for _ in self._rows.all())

    def _range(self, first: Any, last: Any) -> Iterator[tuple[bytes, Any]]:
        return self._rows.range(*(None if key is None else self._key(key) for key in (first, last)))

    def _decoded(self, rows: Iterable[tuple[bytes, Any]]) -> Iterator[KeyValue]:
        return (KeyValue(self._store.key.deserialize(key), self._read_value(value)) for key, value in rows)


class ProcessorWindowStore(StateStore):
    """Window store of a processor; a window is known by its start in milliseconds.

    Mirrors `org.apache.kafka.streams.state.WindowStore`, and `TimestampedWindowStore`.
    """

    def __init__(self, context: OperatorContext, store: Store, access: StoreAccess) -> None:
        super().__init__(store, access)
        if store.retention is None or not isinstance(store.windows, TimeWindows | SlidingWindows):
            raise StreamsError(f"Store '{self.name}' has no windows: make it with Stores.persistent_window_store().")
        self._windows = BytesWindowStore(context, access.table, store.retention)
        self._size = store.windows.size

    def put_row(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a row of a table: its bytes, without the changelog."""
        start = int.from_bytes(key[-8:], "big", signed=True)
        self._windows.put(key[:-8], None if value is None else (value, timestamp), start)

    def put(self, key: Any, value: Any, start: int) -> None:
        """Set the value of a key's window that begins at `start`; None deletes it."""
        data, stored = self._key(key), self._write_value(value)
        self._log(data + struct.pack(">qi", start, 0), stored)
        self._windows.put(data, stored, start)

    def fetch(self, key: Any, time_from: int, time_to: int | None = None) -> Any:
        """Return the value of the window that begins at a time; with `time_to` pairs of start and value.

        Args:
            key: the key.
            time_from: in milliseconds.
            time_to: likewise; windows that begin between the two, both included, are returned in order.
        """
        if time_to is None:
            return self._read_value(self._windows.fetch(self._key(key), time_from))
        windows = self._windows.fetch_range(self._key(key), time_from, time_to)
        return iter([(start, self._read_value(value)) for start, value in windows])

    def backward_fetch(self, key: Any, time_from: int, time_to: int) -> Iterator[tuple[int, Any]]:
        """Return what `fetch` returns for two times, the latest window first."""
        return iter(list(self.fetch(key, time_from, time_to))[::-1])

    def fetch_all(self, time_from: int, time_to: int) -> Iterator[KeyValue]:
        """Return the windows of all keys that begin between two times, as rows with `Windowed` keys, by start."""
        windows = self._windows.fetch_all(time_from, time_to)
        read_key, size = self._store.key.deserialize, self._size
        return (
            KeyValue(Windowed(read_key(key), start, start + size), self._read_value(value))
            for key, start, value in windows
        )

    def all(self) -> Iterator[KeyValue]:
        """Return every window that is kept."""
        return self.fetch_all(-1, FOREVER)


class ProcessorSessionStore(StateStore):
    """Session store of a processor. Mirrors `org.apache.kafka.streams.state.SessionStore`."""

    def __init__(self, context: OperatorContext, store: Store, access: StoreAccess) -> None:
        super().__init__(store, access)
        if store.retention is None:
            raise StreamsError(f"Store '{self.name}' has no retention: make it with Stores.persistent_session_store().")
        self._sessions = BytesSessionStore(context, access.table, store.retention)

    def put_row(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a row of a table: its bytes, without the changelog."""
        end, start = (int.from_bytes(part, "big", signed=True) for part in (key[-16:-8], key[-8:]))
        self._sessions.put(key[:-16], start, end, value)

    def put(self, session: Windowed, value: Any) -> None:
        """Set the value of a key's session; None deletes it."""
        data, stored = self._key(session.key), self._write_value(value)
        self._log(data + struct.pack(">qq", session.end, session.start), stored)
        self._sessions.put(data, session.start, session.end, stored)

    def remove(self, session: Windowed) -> None:
        """Delete a key's session."""
        self.put(session, None)

    def fetch(self, key: Any) -> Iterator[KeyValue]:
        """Return all sessions of `key`, the one that ended first before the others."""
        return self.find_sessions(key, 0, FOREVER)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """Return the value of the session of `key` with this start and end, or None."""
        sessions = self._sessions.find_sessions(self._key(key), end, start)
        return next((self._read_value(value) for *times, value in sessions if times == [end, start]), None)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[KeyValue]:
        """Return the sessions of `key` that end at a time or later and begin at another or earlier."""
        sessions = self._sessions.find_sessions(self._key(key), earliest_end, latest_start)
        return (KeyValue(Windowed(key, start, end), self._read_value(value)) for end, start, value in sessions)


class ProcessorVersionedStore(StateStore):
    """Versioned store of a processor. Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`."""

    def __init__(self, context: OperatorContext, store: Store, access: StoreAccess) -> None:
        super().__init__(store, access)
        if store.retention is None:
            raise StreamsError(
                f"Store '{self.name}' has no history: make it with Stores.persistent_versioned_key_value_store()."
            )
        self._versions, self._drop = BytesVersionedStore(context, access.table, store.retention), context.drop

    def put_row(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a row of a table: its bytes, without the changelog."""
        self._versions.put(key, value, timestamp)

    def get(self, key: Any, as_of: int | None = None) -> VersionedRecord | None:
        """Return the version of `key`, now or as of a time in milliseconds; None if there is none, or it is too old."""
        found = self._versions.version(self._key(key), as_of)
        if found is None or found[1] is None:
            return None
        return VersionedRecord(self._read_value(found[1]), found[0])

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """Set the value of `key` from a time on, None deletes it, and return until when it holds.

        Returns:
            The time of the next version in milliseconds; `LATEST` if there is none, and `TOO_OLD` if the version is
            older than the history: then it was not kept, and counts as dropped.
        """
        return self._put(self._key(key), self._write_value(value), timestamp)

    def delete(self, key: Any, timestamp: int) -> VersionedRecord | None:
        """Delete `key` from a time on, and return the version that it had then, or None."""
        before = self.get(key, timestamp)
        return None if self._put(self._key(key), None, timestamp) == TOO_OLD else before

    def _put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        if self._versions.is_too_old(timestamp):
            self._drop()
            return TOO_OLD
        self._log(key, value, timestamp)
        valid_to = self._versions.put(key, value, timestamp).valid_to
        return LATEST if valid_to is None else valid_to


def open_store(context: OperatorContext, store: Store, access: StoreAccess) -> Any:
    """Return a store of the right kind.

    Args:
        context: of the operator whose state it is part of.
        store: its name, kind, serdes and options.
        access: how to get at it.
    """
    kinds: dict[str, type[StateStore]] = {
        "window": ProcessorWindowStore,
        "session": ProcessorSessionStore,
        "versioned": ProcessorVersionedStore,
    }
    opened: Any = kinds.get(store.kind, ProcessorKeyValueStore)
    return opened(context, store, access)


def _value_codec(store: Store) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return how a value is stored, and how it is read: as bytes, or as bytes with a time."""
    serialize, deserialize = store.value.serialize, store.value.deserialize
    if not store.timestamped:
        return serialize, deserialize

    def write(value: Any) -> tuple[bytes, int] | None:
        if value is None:
            return None
        if not isinstance(value, tuple) or len(value) != 2:
            raise StreamsError(
                f"Store '{store.name}' keeps a time beside each value: put ValueAndTimestamp(value, timestamp) into "
                f"it, not {value!r}."
            )
        data = serialize(value[0])
        return None if data is None else (data, value[1])

    def read(stored: tuple[bytes, int] | None) -> ValueAndTimestamp | None:
        return None if stored is None else ValueAndTimestamp(deserialize(stored[0]), stored[1])

    return write, read
