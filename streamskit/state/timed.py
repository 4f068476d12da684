"""Local copies of stores whose rows have times: windows and sessions, which expire, and versions."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, ClassVar

from streamskit.api.windows import SessionWindows, SlidingWindows, Windowed
from streamskit.kafka.topic_partition import ChangelogRecord
from streamskit.serdes import Serde
from streamskit.state.local import FoundRow, LocalKeyValueStore, LocalStore, StorePartition
from streamskit.state.read_only import (
    ReadOnlySessionStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
    Time,
    VersionedRecord,
    milliseconds,
)
from streamskit.state.rows import (
    Span,
    StoreEntry,
    keyed,
    pack,
    sorting_time,
    time_at,
    time_bytes,
    timestamp_of,
    unkeyed,
)
from streamskit.state.storage import RowChange, Storage
from streamskit.state.stores import Store, ValueAndTimestamp

SHORTEST_SEGMENT = 60_000
"""The least time that a segment covers, in milliseconds, as in Kafka Streams."""


class TimedStore(LocalStore):
    """What stores of windows and sessions share: rows that begin with the key and end in their time.

    A row whose time is a retention or more before the latest one of its partition is gone. Segments cover
    half a retention each; an expired one is dropped as a whole.
    """

    times: ClassVar[int] = 1
    """The number of times that a row ends with."""

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None, *, is_global: bool = False) -> None:
        super().__init__(store, make, is_global=is_global)
        if store.retention is None:
            raise ValueError(f"Store '{store.name}' has no retention: say for how long it keeps its rows.")
        self._retention = store.retention
        self._reach = store.shown_for - 1
        self._length = max(store.retention // 2, SHORTEST_SEGMENT)

    def _changes(self, partition: StorePartition, records: Iterable[ChangelogRecord]) -> Iterator[RowChange]:
        row_of, length, latest = self._row, self._length, partition.stream_time
        for key, value, timestamp in records:
            row = row_of(key)
            time = time_at(row, len(row) - 8)
            if time > latest:
                partition.stream_time = latest = time
            yield RowChange(time // length, row, None if value is None else pack(value, timestamp))

    def _tidy(self, partition: StorePartition) -> None:
        storage, first = partition.storage, (partition.stream_time - self._retention) // self._length
        for segment in storage.segments():
            if segment >= first:
                break
            storage.drop(segment)

    def _segments(self, partition: StorePartition, span: Span) -> list[int]:
        first = None if span.earliest is None else span.earliest // self._length
        last = None if span.latest is None else span.latest // self._length
        return [
            segment
            for segment in partition.storage.segments()
            if (first is None or segment >= first) and (last is None or segment <= last)
        ]

    def _is_kept(self, partition: StorePartition, row: bytes, packed: bytes, span: Span) -> bool:
        time = time_at(row, len(row) - 8)
        return (
            time >= partition.stream_time - self._reach
            and (span.earliest is None or time >= span.earliest)
            and (span.latest is None or time <= span.latest)
        )

    def _listed(self, span: Span) -> Iterable[FoundRow]:
        place = self._order(span)
        return sorted(self._found(span, None), key=lambda found: place(found[0]), reverse=span.reverse)

    @abstractmethod
    def _order(self, span: Span) -> Callable[[bytes], tuple[Any, ...]]:
        """Return the sort key of rows in lists, as in Kafka Streams, which has segments on disk."""

    def _beginning(self, key: bytes) -> bytes:
        return _begin(key) or b""

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool], among: Span) -> Iterable[FoundRow]:
        """Return the newest rows; those of older segments only where the newer ones have too few."""
        found: list[FoundRow] = []
        each = [(segment, number, kept) for number, kept in self._readable() for segment in kept.storage.segments()]
        newest = sorted({segment for segment, _, _ in each}, reverse=True)
        for segment in newest:
            for number, partition in ((number, kept) for one, number, kept in each if one == segment):
                found += [
                    (row, packed, number)
                    for row, packed in partition.storage.scan(segment, among.begin, among.end, False)
                    if self._is_kept(partition, row, packed, Span()) and is_wanted(unkeyed(row, self.times))
                ]
            if len(found) >= rows:
                break
        return nsmallest(rows, found, key=lambda each: (-time_at(each[0], len(each[0]) - 8), each[0]))

    def _find(self, row: bytes) -> StoreEntry | None:
        """Return one row, or None."""
        time = time_at(row, len(row) - 8)
        for number, partition in self._readable():
            packed = partition.storage.get(time // self._length, row)
            if packed is not None and self._is_kept(partition, row, packed, Span()):
                return self._entry((row, packed, number))
        return None


class LocalWindowStore(TimedStore, ReadOnlyWindowStore[Span]):
    """A local table of keys, windows and values."""

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None, *, is_global: bool = False) -> None:
        if store.windows is None or isinstance(store.windows, SessionWindows):
            raise ValueError(f"Store '{store.name}' has no windows: it is a {store.kind} store.")
        self._size = store.windows.size
        super().__init__(store, make, is_global=is_global)

    def entry(self, key: Any, start: Time) -> StoreEntry | None:
        """Return the window of `key` that starts at a time, with all that is known about it, or None."""
        return self._find(keyed(self._key_bytes(key)) + time_bytes(milliseconds(start)))

    def windows(self, key: Any, time_from: Time, time_to: Time, reverse: bool = False) -> Span:
        inner, first, last = keyed(self._key_bytes(key)), milliseconds(time_from), milliseconds(time_to)
        return Span(inner + time_bytes(first), inner + time_bytes(last) + b"\0", reverse, first, last)

    def windows_between(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time, reverse: bool = False
    ) -> Span:
        begin = None if key_from is None else keyed(self._key_bytes(key_from))
        end = None if key_to is None else keyed(self._key_bytes(key_to)) + b"\xff" * 9
        return Span(begin, end, reverse, milliseconds(time_from), milliseconds(time_to))

    def _order(self, span: Span) -> Callable[[bytes], tuple[Any, ...]]:
        # Of windows emitted on close, Kafka Streams also keeps sliding ones by key, for lists of some keys.
        is_of_some_keys = not (span.begin is None and span.end is None)
        has_index = isinstance(self._store.windows, SlidingWindows) and is_of_some_keys
        goes_by_time = not self._store.persistent or (self._store.by_time and not has_index)
        length = 1 if goes_by_time else self._length
        return lambda row: (time_at(row, len(row) - 8) // length, row)

    def _value_at(self, key: Any, start: Time) -> Any:
        found = self.entry(key, start)
        return None if found is None else found.value

    def _row(self, key: bytes) -> bytes:
        return keyed(key[:-12]) + sorting_time(key[-12:-4])

    def _decode_key(self, row: bytes) -> Windowed:
        start = time_at(row, len(row) - 8)
        return Windowed(self._store.key.deserialize(unkeyed(row, 1)), start, start + self._size)


class LocalSessionStore(TimedStore, ReadOnlySessionStore[Span]):
    """A local table of keys, sessions and values."""

    times = 2

    def fetch_session(self, key: Any, start: Time, end: Time) -> Any:
        found = self.entry(key, start, end)
        return None if found is None else found.value

    def entry(self, key: Any, start: Time, end: Time) -> StoreEntry | None:
        """Return one session with all that is known about it, or None."""
        times = time_bytes(milliseconds(start)) + time_bytes(milliseconds(end))
        return self._find(keyed(self._key_bytes(key)) + times)

    def sessions(self, key: Any, reverse: bool = False) -> Span:
        return self.sessions_between(key, key, reverse)

    def sessions_between(self, key_from: Any, key_to: Any, reverse: bool = False) -> Span:
        begin = None if key_from is None else keyed(self._key_bytes(key_from))
        return Span(begin, None if key_to is None else keyed(self._key_bytes(key_to)) + b"\xff" * 17, reverse)

    def _order(self, span: Span) -> Callable[[bytes], tuple[Any, ...]]:
        persistent, length = self._store.persistent, self._length

        def place(row: bytes) -> tuple[Any, ...]:
            key, start, end = row[:-16], time_at(row, len(row) - 16), time_at(row, len(row) - 8)
            return (end // length, key, end, start) if persistent else (end, key, -start)

        return place

    def _row(self, key: bytes) -> bytes:
        return keyed(key[:-16]) + sorting_time(key[-8:]) + sorting_time(key[-16:-8])

    def _decode_key(self, row: bytes) -> Windowed:
        inner = self._store.key.deserialize(unkeyed(row, 2))
        return Windowed(inner, time_at(row, len(row) - 16), time_at(row, len(row) - 8))


GONE, THERE = b"\0", b"\1"
"""The first byte of a version that deletes the row, and of one with a value."""

EARLIEST = -(2**63)
"""Where the versions of a key begin if no time is given."""


class LocalVersionedStore(LocalKeyValueStore, ReadOnlyVersionedStore[Span]):
    """A local table of keys, times and values: a row's bytes are a key and the time of a version."""

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None, *, is_global: bool = False) -> None:
        super().__init__(store, make, is_global=is_global)
        self._history = store.retention or 0

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        entry = self.entry(key, None if as_of is None else milliseconds(as_of))
        return None if entry is None else VersionedRecord(_plain(entry.value), entry.timestamp)

    def entry(self, key: Any, as_of: int | None = None) -> StoreEntry | None:
        """Return the version of `key` with all that is known about it, or None."""
        inner = keyed(self._key_bytes(key))
        for number, partition in self._readable():
            found = self._version(partition, inner, as_of)
            if found is not None and found[1][8:9] == THERE:
                return self._entry((*found, number))
        return None

    def with_prefix(self, prefix: Any, serde: Serde | None = None, reverse: bool = False) -> Span:
        span = super().with_prefix(prefix, serde, reverse)
        return Span(_begin(span.begin), _begin(span.end), reverse)

    def between(self, first: Any = None, last: Any = None, reverse: bool = False) -> Span:
        begin = None if first is None else keyed(self._key_bytes(first))
        return Span(begin, None if last is None else keyed(self._key_bytes(last)) + b"\xff" * 9, reverse)

    def versions_between(
        self, key: Any, time_from: Time | None = None, time_to: Time | None = None, reverse: bool = False
    ) -> Span:
        inner, (first, last) = keyed(self._key_bytes(key)), self._between(time_from, time_to)
        end = inner + (b"\xff" * 9 if last is None else time_bytes(last) + b"\0")
        return Span(inner, end, reverse, EARLIEST if first is None else first, last)

    def entries(self, span: Span, limit: int | None = None, after: bytes | None = None) -> list[StoreEntry]:
        entries = super().entries(span, limit, after)
        if span.earliest is None:
            return entries
        return [each._replace(valid_to=self._valid_to(self._partitions[each.partition], each.row)) for each in entries]

    def decode(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        return self._store.key.deserialize(key), None if value is None else self._store.value.deserialize(value)

    def _versions(self, selection: Span) -> list[VersionedRecord]:
        return [VersionedRecord(_plain(each.value), each.timestamp, each.valid_to) for each in self.entries(selection)]

    def _version(self, partition: StorePartition, inner: bytes, as_of: int | None) -> tuple[bytes, bytes] | None:
        end = inner + (b"\xff" * 9 if as_of is None else time_bytes(as_of) + b"\0")
        found = next(partition.storage.scan(0, inner, end, True), None)
        if found is None or as_of is None or as_of >= partition.stream_time - self._history:
            return found
        return found if self._valid_to(partition, found[0]) is None else None

    def _valid_to(self, partition: StorePartition, row: bytes) -> int | None:
        """Return the time of the version that replaced one, a deletion included; None if there is none."""
        later = next(partition.storage.scan(0, row + b"\0", row[:-8] + b"\xff" * 9, False), None)
        return None if later is None else time_at(later[0], len(later[0]) - 8)

    def _changes(self, partition: StorePartition, records: Iterable[ChangelogRecord]) -> Iterator[RowChange]:
        fresh: dict[bytes, bytes] = {}
        for key, value, timestamp in records:
            partition.stream_time = max(partition.stream_time, timestamp)
            inner = keyed(key)
            fresh[inner + time_bytes(timestamp)] = inner
            yield RowChange(0, inner + time_bytes(timestamp), pack(GONE if value is None else THERE + value, timestamp))
        for inner in set(fresh.values()):
            yield from self._forgotten(partition, inner, [row for row, key in fresh.items() if key == inner])

    def _forgotten(self, partition: StorePartition, inner: bytes, fresh: list[bytes]) -> Iterator[RowChange]:
        """Yield the deletions of versions that were replaced before the history begins."""
        known = partition.storage.scan(0, inner, inner + b"\xff" * 9, False)
        rows = sorted({*fresh, *(row for row, _ in known)})
        begins = partition.stream_time - self._history
        for row, later in zip(rows, islice(rows, 1, None), strict=False):
            if time_at(later, len(later) - 8) <= begins:
                yield RowChange(0, row, None)

    def _is_kept(self, partition: StorePartition, row: bytes, packed: bytes, span: Span) -> bool:
        if packed[8:9] == GONE:
            return False
        valid_to = self._valid_to(partition, row)
        if valid_to is None or span.earliest is None:
            return valid_to is None
        begins = partition.stream_time - self._history
        is_known = valid_to > begins and (span.latest is None or span.latest >= begins)
        return is_known and valid_to > span.earliest

    def _beginning(self, key: bytes) -> bytes:
        return _begin(key) or b""

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool], among: Span) -> Iterable[FoundRow]:
        return islice((found for found in self._found(among, None) if is_wanted(unkeyed(found[0], 1))), rows)

    def _decode_key(self, row: bytes) -> Any:
        return self._store.key.deserialize(unkeyed(row, 1))

    def _value(self, packed: bytes) -> Any:
        value = self._store.value.deserialize(packed[9:])
        return ValueAndTimestamp(value, timestamp_of(packed)) if self._timestamped else value

    def __len__(self) -> int:
        return sum(1 for _ in LocalStore._found(self, Span(), None))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, ValueAndTimestamp) else value


def _begin(bound: bytes | None) -> bytes | None:
    return None if bound is None else keyed(bound)[:-2]


KINDS = {"window": LocalWindowStore, "session": LocalSessionStore, "versioned": LocalVersionedStore}


def local_store(store: Store, make: Callable[[int], Storage] | None = None, *, is_global: bool = False) -> LocalStore:
    """Return a local store of the right kind.

    Args:
        store: what it is to hold.
        make: makes the storage of a partition; in memory when not given.
        is_global: whether it is one table, whichever partition a row came from.
    """
    return KINDS.get(store.kind, LocalKeyValueStore)(store, make, is_global=is_global)
