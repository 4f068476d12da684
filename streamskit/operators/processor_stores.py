"""State stores of processors: plain Python values over the tables of a task, with a changelog.

Mirrors Kafka Streams' metered stores (`MeteredKeyValueStore`, ...), which wrap change-logging and byte stores.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from streamskit.common.errors import StreamsError
from streamskit.operators.bytes_stores import BytesKeyValueStore, BytesLruStore, BytesVersionedStore
from streamskit.operators.key_value_iterator import KeyValueIterator
from streamskit.operators.processor_timed_stores import ProcessorSessionStore, ProcessorWindowStore
from streamskit.operators.state_store import StateStore, StoreAccess
from streamskit.operators.stream_task import OperatorContext
from streamskit.serdes import Serde, require_serde
from streamskit.state.read_only import VersionedRecord
from streamskit.state.stores import KeyValue, Store

LATEST, TOO_OLD = -1, -(2**63)
"""What `put` of a versioned store returns for the latest version of a row, and for one that is too old to be kept."""


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
        self._put(self._key(key), self._write_value(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of `key` if it has none; return the one it had, or None."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set the values of many keys, given as pairs; if one of them is refused, none is set."""
        for key, value in [self._written(entry) for entry in entries]:
            self._put(key, value)

    def delete(self, key: Any) -> Any:
        """Delete `key` and return the value it had, or None."""
        before = self.get(key)
        self.put(key, None)
        return before

    def range(self, first: Any, last: Any) -> KeyValueIterator[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included; None leaves an end open."""
        return self._listed(self._range(first, last))

    def reverse_range(self, first: Any, last: Any) -> KeyValueIterator[KeyValue]:
        """Return the rows of `range`, the last key first."""
        return self._listed(reversed([*self._range(first, last)]))

    def all(self) -> KeyValueIterator[KeyValue]:
        """Return every row."""
        return self.range(None, None)

    def reverse_all(self) -> KeyValueIterator[KeyValue]:
        """Return every row, the last key first."""
        return self.reverse_range(None, None)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> KeyValueIterator[KeyValue]:
        """Return the rows whose keys' bytes begin with those of `prefix`.

        Args:
            prefix: what they begin with.
            serde: of the prefix; the keys' own by default.
        """
        if prefix is None:
            raise StreamsError(f"Store '{self.name}': prefix_scan() needs a prefix; for all rows write all().")
        if serde is not None:
            require_serde(serde, f"Store '{self.name}': the serde of a prefix")
        start = (serde or self._store.key).serialize(prefix) or b""
        return self._listed(row for row in self._rows.all() if row[0].startswith(start))

    def approximate_num_entries(self) -> int:
        """Return how many rows there are."""
        return sum(1 for _ in self._rows.all())

    def _put(self, key: bytes, value: Any) -> None:
        self._log(key, value)
        self._rows.put(key, value)

    def _written(self, entry: Any) -> tuple[bytes, Any]:
        """Return key and value of an entry as they are stored."""
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise StreamsError(
                f"Store '{self.name}': put_all() takes pairs of a key and a value, and {entry!r} is none. Of a dict, "
                "give the items()."
            )
        return self._key(entry[0]), self._write_value(entry[1])

    def _range(self, first: Any, last: Any) -> Iterator[tuple[bytes, Any]]:
        return self._rows.range(*(None if key is None else self._key(key) for key in (first, last)))

    def _listed(self, rows: Iterable[tuple[bytes, Any]]) -> KeyValueIterator[KeyValue]:
        return KeyValueIterator(self.name, self._decoded(rows))

    def _decoded(self, rows: Iterable[tuple[bytes, Any]]) -> Iterator[KeyValue]:
        sees_changes = not self._store.persistent and self._store.max_entries is None
        for key, found in rows:
            # As in Kafka Streams, a loop over a store in memory sees what has become of its rows meanwhile.
            value = self._rows.get(key) if sees_changes else found
            if value is not None:
                yield KeyValue(self._store.key.deserialize(key), self._read_value(value))


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
        found = self._versions.version(self._key(key), None if as_of is None else self._time("as_of", as_of))
        if found is None or found[1] is None:
            return None
        return VersionedRecord(self._read_value(found[1]), found[0])

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """Set the value of `key` from a time on, None deletes it, and return until when it holds.

        Returns:
            The time of the next version in milliseconds; `LATEST` if there is none, and `TOO_OLD` if the version is
            older than the history: then it was not kept, and counts as dropped.
        """
        return self._put(self._key(key), self._write_value(value), self._time_of_row(timestamp))

    def delete(self, key: Any, timestamp: int) -> VersionedRecord | None:
        """Delete `key` from a time on, and return the version that it had then, or None."""
        time = self._time_of_row(timestamp)
        before = self.get(key, time)
        return None if self._put(self._key(key), None, time) == TOO_OLD else before

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
