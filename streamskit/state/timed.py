"""Local copies of stores whose rows belong to a time, and are gone when it is long past: windows and sessions."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any, ClassVar

from streamskit.api.windows import SessionWindows, Windowed
from streamskit.state.local import Found, LocalStore, Partition, Record
from streamskit.state.rows import Entry, Span, keyed, pack, time_at, time_bytes, unkeyed
from streamskit.state.storage import Change, Storage
from streamskit.state.stores import KeyValue, Store

Time = int | datetime

SHORTEST_SEGMENT = 60_000
"""The least time that a segment covers, in milliseconds, as in Kafka Streams."""


class TimedStore(LocalStore):
    """What stores of windows and sessions share: rows that begin with the key and end in their time.

    A row whose time is a retention or more before the latest one of its partition is gone. Rows lie in segments of half
    a retention; a segment that is past is dropped as a whole.
    """

    times: ClassVar[int] = 1
    """How many times a row ends in."""

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None) -> None:
        super().__init__(store, make)
        if store.retention is None:
            raise ValueError(f"Store '{store.name}' has no retention: say for how long it keeps its rows.")
        self._retention = store.retention
        self._length = max(store.retention // 2, SHORTEST_SEGMENT)

    def backward_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return self._pairs(self.everything(reverse=True))

    def _changes(self, partition: Partition, records: Iterable[Record]) -> Iterator[Change]:
        for key, value, timestamp in records:
            row = self._row(key)
            time = time_at(row, len(row) - 8)
            partition.stream_time = max(partition.stream_time, time)
            yield Change(time // self._length, row, None if value is None else pack(value, timestamp))

    def _tidy(self, partition: Partition) -> None:
        storage, first = partition.storage, (partition.stream_time - self._retention) // self._length
        for segment in storage.segments():
            if segment >= first:
                break
            storage.drop(segment)

    def _segments(self, partition: Partition, span: Span) -> list[int]:
        first = None if span.earliest is None else span.earliest // self._length
        last = None if span.latest is None else span.latest // self._length
        return [
            segment
            for segment in partition.storage.segments()
            if (first is None or segment >= first) and (last is None or segment <= last)
        ]

    def _is_kept(self, partition: Partition, row: bytes, packed: bytes, span: Span) -> bool:
        time = time_at(row, len(row) - 8)
        return (
            time > partition.stream_time - self._retention
            and (span.earliest is None or time >= span.earliest)
            and (span.latest is None or time <= span.latest)
        )

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool]) -> Iterable[Found]:
        """Return the newest rows; those of older segments only where the newer ones have too few."""
        found: list[Found] = []
        each = [(segment, number, kept) for number, kept in self._readable() for segment in kept.storage.segments()]
        newest = sorted({segment for segment, _, _ in each}, reverse=True)
        for segment in newest:
            for number, partition in ((number, kept) for one, number, kept in each if one == segment):
                found += [
                    (row, packed, number)
                    for row, packed in partition.storage.scan(segment, None, None, False)
                    if self._is_kept(partition, row, packed, Span()) and is_wanted(unkeyed(row, self.times))
                ]
            if len(found) >= rows:
                break
        return nsmallest(rows, found, key=lambda each: (-time_at(each[0], len(each[0]) - 8), each[0]))

    def _find(self, row: bytes) -> Entry | None:
        """Return one row, or None."""
        time = time_at(row, len(row) - 8)
        for number, partition in self._readable():
            packed = partition.storage.get(time // self._length, row)
            if packed is not None and self._is_kept(partition, row, packed, Span()):
                return self._entry((row, packed, number))
        return None


class LocalWindowStore(TimedStore):
    """A table of keys, windows and values; a window's time is its start.

    Mirrors `org.apache.kafka.streams.state.ReadOnlyWindowStore`.
    """

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None) -> None:
        if store.windows is None or isinstance(store.windows, SessionWindows):
            raise ValueError(f"Store '{store.name}' has no windows: it is a {store.kind} store.")
        self._size = store.windows.size
        super().__init__(store, make)

    def fetch(self, key: Any, time_from: Time, time_to: Time | None = None) -> Any:
        """Return the windows of `key` that start between two times, or the value of the one that starts at a time.

        Args:
            key: the key.
            time_from: a datetime, or milliseconds since 1970.
            time_to: likewise, included; without it the value of the window that starts at `time_from`, or None.

        >>> streams.store("trade-aggregates").fetch("KO", 0, 60_000)
        [(0, {'count': 3}), (1000, {'count': 2})]
        """
        if time_to is None:
            found = self.entry(key, time_from)
            return None if found is None else found.value
        return [(entry.key.start, entry.value) for entry in self.entries(self.windows(key, time_from, time_to))]

    def backward_fetch(self, key: Any, time_from: Time, time_to: Time) -> list[tuple[int, Any]]:
        """Return the windows of `key` that start between two times, the latest first."""
        span = self.windows(key, time_from, time_to, reverse=True)
        return [(entry.key.start, entry.value) for entry in self.entries(span)]

    def fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of the keys from one to another that start between two times, by key and then by time.

        Mirrors `ReadOnlyWindowStore#fetch(keyFrom, keyTo, timeFrom, timeTo)`.
        """
        return self._pairs(self.windows_between(key_from, key_to, time_from, time_to))

    def backward_fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of `fetch_range`, the last first."""
        return self._pairs(self.windows_between(key_from, key_to, time_from, time_to, reverse=True))

    def fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of all keys that start between two times, both included, by key and then by time."""
        return self._pairs(self.windows_of_all(time_from, time_to))

    def backward_fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of `fetch_all`, the last first."""
        return self._pairs(self.windows_of_all(time_from, time_to, reverse=True))

    def entry(self, key: Any, start: Time) -> Entry | None:
        """Return the window of `key` that starts at a time with all that is known of it, or None."""
        return self._find(keyed(self._key_bytes(key)) + time_bytes(milliseconds(start)))

    def windows(self, key: Any, time_from: Time, time_to: Time, reverse: bool = False) -> Span:
        """Return what asks for the windows of `fetch`."""
        inner, first, last = keyed(self._key_bytes(key)), milliseconds(time_from), milliseconds(time_to)
        return Span(inner + time_bytes(first), inner + time_bytes(last) + b"\0", reverse, first, last)

    def windows_of_all(self, time_from: Time, time_to: Time, reverse: bool = False) -> Span:
        """Return what asks for the windows of `fetch_all`."""
        return Span(None, None, reverse, milliseconds(time_from), milliseconds(time_to))

    def windows_between(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time, reverse: bool = False
    ) -> Span:
        """Return what asks for the windows of `fetch_range`; a key that is None leaves that side open."""
        begin = None if key_from is None else keyed(self._key_bytes(key_from))
        end = None if key_to is None else keyed(self._key_bytes(key_to)) + b"\xff" * 9
        return Span(begin, end, reverse, milliseconds(time_from), milliseconds(time_to))

    def _row(self, key: bytes) -> bytes:
        return keyed(key[:-12]) + time_bytes(int.from_bytes(key[-12:-4], "big", signed=True))

    def _decode_key(self, row: bytes) -> Windowed:
        start = time_at(row, len(row) - 8)
        return Windowed(self._store.key.deserialize(unkeyed(row, 1)), start, start + self._size)


class LocalSessionStore(TimedStore):
    """A table of keys, sessions and values; a session's time is its end.

    Mirrors `org.apache.kafka.streams.state.ReadOnlySessionStore`.
    """

    times = 2

    def fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the earliest first.

        >>> streams.store("visits").fetch("alice")
        [KeyValue(key=Windowed(key='alice', start=0, end=900), value=3)]
        """
        return self._pairs(self.sessions(key))

    def backward_fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the latest first."""
        return self._pairs(self.sessions(key, reverse=True))

    def fetch_session(self, key: Any, start: Time, end: Time) -> Any:
        """Return the value of the session of `key` with exactly this start and end, or None."""
        found = self.entry(key, start, end)
        return None if found is None else found.value

    def find_sessions(self, key: Any, earliest_end: Time, latest_start: Time) -> list[KeyValue]:
        """Return the sessions of `key` that end at a time or later and start at a time or earlier."""
        first, last = milliseconds(earliest_end), milliseconds(latest_start)
        return [session for session in self.fetch(key) if session.key.end >= first and session.key.start <= last]

    def fetch_range(self, key_from: Any, key_to: Any) -> list[KeyValue]:
        """Return all sessions of the keys from one to another, by key and then by time.

        Mirrors `ReadOnlySessionStore#fetch(keyFrom, keyTo)`.
        """
        return self._pairs(self.sessions_between(key_from, key_to))

    def entry(self, key: Any, start: Time, end: Time) -> Entry | None:
        """Return one session with all that is known of it, or None."""
        times = time_bytes(milliseconds(start)) + time_bytes(milliseconds(end))
        return self._find(keyed(self._key_bytes(key)) + times)

    def sessions(self, key: Any, reverse: bool = False) -> Span:
        """Return what asks for the sessions of `fetch`."""
        return self.sessions_between(key, key, reverse)

    def sessions_between(self, key_from: Any, key_to: Any, reverse: bool = False) -> Span:
        """Return what asks for the sessions of `fetch_range`; a key that is None leaves that side open."""
        begin = None if key_from is None else keyed(self._key_bytes(key_from))
        return Span(begin, None if key_to is None else keyed(self._key_bytes(key_to)) + b"\xff" * 17, reverse)

    def _row(self, key: bytes) -> bytes:
        end, start = (int.from_bytes(part, "big", signed=True) for part in (key[-16:-8], key[-8:]))
        return keyed(key[:-16]) + time_bytes(start) + time_bytes(end)

    def _decode_key(self, row: bytes) -> Windowed:
        inner = self._store.key.deserialize(unkeyed(row, 2))
        return Windowed(inner, time_at(row, len(row) - 16), time_at(row, len(row) - 8))


def milliseconds(time: Time) -> int:
    """Return a time as milliseconds since 1970; a datetime without a zone is UTC."""
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    return int(time)
