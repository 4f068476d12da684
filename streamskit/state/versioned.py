"""A local store that keeps the versions of a row, so that one can ask what it was at a time."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from streamskit.serdes import Serde
from streamskit.state.local import Found, LocalKeyValueStore, LocalStore, Partition, Record
from streamskit.state.rows import Entry, Span, keyed, pack, time_at, time_bytes, timestamp_of, unkeyed
from streamskit.state.storage import Change, Storage
from streamskit.state.stores import Store, ValueAndTimestamp

GONE, THERE = b"\0", b"\1"
"""What a version begins with: one that deletes the row, and one with a value."""


class VersionedRecord(NamedTuple):
    """A value and the time from which on it was the row's. Mirrors `org.apache.kafka.streams.state.VersionedRecord`."""

    value: Any
    timestamp: int


class LocalVersionedStore(LocalKeyValueStore):
    """A table of keys, times and values; which of two updates is the later one does not depend on their order.

    A row's bytes here are a key and the time of a version. Lists have the latest version of each row.
    Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`.
    """

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None) -> None:
        super().__init__(store, make)
        self._history = store.retention or 0

    def get(self, key: Any, as_of: int | None = None) -> Any:
        """Return the version of `key` that was valid at a time, the latest one when not given, or None.

        Args:
            key: the key.
            as_of: milliseconds since 1970. What was replaced before the store's history begins is not known any more.

        >>> streams.store("prices").get("KO", as_of=1000)
        VersionedRecord(value=78.4, timestamp=900)
        """
        entry = self.entry(key, as_of)
        if entry is None:
            return None
        value = entry.value.value if isinstance(entry.value, ValueAndTimestamp) else entry.value
        return VersionedRecord(value, entry.timestamp)

    def entry(self, key: Any, as_of: int | None = None) -> Entry | None:
        """Return the version of `key` with all that is known of it, or None."""
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

    def decode(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        return self._store.key.deserialize(key), None if value is None else self._store.value.deserialize(value)

    def _version(self, partition: Partition, inner: bytes, as_of: int | None) -> tuple[bytes, bytes] | None:
        end = inner + (b"\xff" * 9 if as_of is None else time_bytes(as_of) + b"\0")
        found = next(partition.storage.scan(0, inner, end, True), None)
        if found is None or as_of is None or as_of >= partition.stream_time - self._history:
            return found
        later = next(partition.storage.scan(0, found[0] + b"\0", inner + b"\xff" * 9, False), None)
        return found if later is None else None

    def _changes(self, partition: Partition, records: Iterable[Record]) -> Iterator[Change]:
        fresh: dict[bytes, bytes] = {}
        for key, value, timestamp in records:
            partition.stream_time = max(partition.stream_time, timestamp)
            inner = keyed(key)
            fresh[inner + time_bytes(timestamp)] = inner
            yield Change(0, inner + time_bytes(timestamp), pack(GONE if value is None else THERE + value, timestamp))
        for inner in set(fresh.values()):
            yield from self._forgotten(partition, inner, [row for row, key in fresh.items() if key == inner])

    def _forgotten(self, partition: Partition, inner: bytes, fresh: list[bytes]) -> Iterator[Change]:
        """Yield the deletion of versions that were over before the history begins."""
        known = partition.storage.scan(0, inner, inner + b"\xff" * 9, False)
        rows = sorted({*fresh, *(row for row, _ in known)})
        begins = partition.stream_time - self._history
        for row, later in zip(rows, islice(rows, 1, None), strict=False):
            if time_at(later, len(later) - 8) <= begins:
                yield Change(0, row, None)

    def _is_kept(self, partition: Partition, row: bytes, packed: bytes, span: Span) -> bool:
        if packed[8:9] == GONE:
            return False
        later = next(partition.storage.scan(0, row + b"\0", row[:-8] + b"\xff" * 9, False), None)
        return later is None

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool]) -> Iterable[Found]:
        return islice((found for found in self._found(Span(), None) if is_wanted(unkeyed(found[0], 1))), rows)

    def _decode_key(self, row: bytes) -> Any:
        return self._store.key.deserialize(unkeyed(row, 1))

    def _value(self, packed: bytes) -> Any:
        value = self._store.value.deserialize(packed[9:])
        return ValueAndTimestamp(value, timestamp_of(packed)) if self._timestamped else value

    def __len__(self) -> int:
        return sum(1 for _ in LocalStore._found(self, Span(), None))


def _begin(bound: bytes | None) -> bytes | None:
    return None if bound is None else keyed(bound)[:-2]
