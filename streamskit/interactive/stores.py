"""Local copies of state stores, filled from their changelogs and read by queries."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd
from sortedcontainers import SortedDict

from streamskit.topology import Store
from streamskit.windows import Windowed

Time = int | datetime


class KeyValue(NamedTuple):
    """One row of a store. Mirrors `org.apache.kafka.streams.KeyValue`."""

    key: Any
    value: Any


class LocalStore:
    """What all local stores share: rows in the order of their bytes, written by one thread and read by any.

    A row's value stays in its bytes until somebody asks for it.
    """

    def __init__(self, store: Store) -> None:
        self.name = store.name
        self._store = store
        self._rows: SortedDict[Any, tuple[bytes, int]] = SortedDict()
        self._changing = threading.Lock()
        self.updates = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}': {len(self)} rows after {self.updates} updates>"

    def apply(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take one record of the changelog in; a null value deletes the row."""
        with self._changing:
            self.updates += 1
            row = self._row(key)
            if value is None:
                self._rows.pop(row, None)
            else:
                self._rows[row] = (value, timestamp)

    def approximate_num_entries(self) -> int:
        """Return the number of rows. Mirrors `ReadOnlyKeyValueStore#approximateNumEntries`."""
        return len(self)

    def all(self) -> list[KeyValue]:
        """Return every row, in the order of the keys' bytes. Mirrors the stores' `all()`."""
        return list(self._read(None, None))

    def to_pandas(self) -> pd.DataFrame:
        """Return every row as a data frame: the key (and its window), the value's fields, the time of the last update."""
        return frame_of(self._snapshot(None, None), self._decode_key, self._store)

    def _row(self, key: bytes) -> Any:
        return key

    def _decode_key(self, row: Any) -> Any:
        return self._store.key.deserialize(row)

    def _snapshot(self, first: Any, last: Any) -> list[tuple[Any, tuple[bytes, int]]]:
        with self._changing:
            return [(row, self._rows[row]) for row in self._rows.irange(first, last)]

    def _read(self, first: Any, last: Any) -> Iterator[KeyValue]:
        for row, (value, _) in self._snapshot(first, last):
            yield KeyValue(self._decode_key(row), self._store.value.deserialize(value))

    def _key_bytes(self, key: Any) -> bytes:
        if key is None:
            raise ValueError(f"Store '{self.name}' has no row with the key None: name a key.")
        return self._store.key.serialize(key) or b""


class KeyValueStore(LocalStore):
    """A table of keys and values. Mirrors `org.apache.kafka.streams.state.ReadOnlyKeyValueStore`."""

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None if there is none.

        >>> streams.store("counts").get("KO")
        42
        """
        row = self._rows.get(self._key_bytes(key))
        return None if row is None else self._store.value.deserialize(row[0])

    def range(self, first: Any, last: Any) -> list[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included, in the order of their bytes."""
        return list(self._read(self._key_bytes(first), self._key_bytes(last)))


class WindowStore(LocalStore):
    """A table of keys, windows and values. Mirrors `org.apache.kafka.streams.state.ReadOnlyWindowStore`.

    A window older than the store's retention is gone.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        assert store.windows is not None and store.retention is not None
        self._size, self._retention = store.windows.size, store.retention
        self._latest = self._purged = 0

    def fetch(self, key: Any, time_from: Time, time_to: Time | None = None) -> Any:
        """Return the windows of `key` that start between two times, or the value of the one that starts at a time.

        Args:
            key: the key.
            time_from: a datetime, or milliseconds since 1970.
            time_to: likewise, included; without it the value of the window that starts at `time_from`, or None.

        >>> streams.store("trade-aggregates").fetch("KO", 0, 60_000)
        [(0, {'count': 3}), (1000, {'count': 2})]
        """
        start, inner = milliseconds(time_from), self._key_bytes(key)
        if time_to is None:
            row = self._rows.get((inner, start))
            return None if row is None else self._store.value.deserialize(row[0])
        rows = self._snapshot((inner, start), (inner, milliseconds(time_to)))
        return [(row[1], self._store.value.deserialize(value)) for row, (value, _) in rows]

    def fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of all keys that start between two times, both included."""
        first, last = milliseconds(time_from), milliseconds(time_to)
        return [row for row in self.all() if first <= row.key.start <= last]

    def apply(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        super().apply(key, value, timestamp)
        self._latest = max(self._latest, self._row(key)[1])
        # Looking for old windows at every update would cost more than keeping them a little longer.
        if self._latest - self._purged > max(self._retention // 10, self._size):
            self._purge()

    def _purge(self) -> None:
        self._purged = self._latest
        oldest = self._latest - self._retention
        with self._changing:
            for row in [row for row in self._rows if row[1] < oldest]:
                del self._rows[row]

    def _row(self, key: bytes) -> tuple[bytes, int]:
        return key[:-12], int.from_bytes(key[-12:-4], "big", signed=True)

    def _decode_key(self, row: tuple[bytes, int]) -> Windowed:
        return Windowed(self._store.key.deserialize(row[0]), row[1], row[1] + self._size)


def local_store(store: Store) -> LocalStore:
    """Return an empty local store of the right kind."""
    return WindowStore(store) if store.windows is not None else KeyValueStore(store)


def milliseconds(time: Time) -> int:
    """Return a time as milliseconds since 1970; a datetime without a zone is UTC."""
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    return int(time)


def frame_of(rows: list[Any], decode_key: Any, store: Store) -> pd.DataFrame:
    """Return rows of a store as a data frame, with one column for each field."""
    records = []
    for row, (value, timestamp) in rows:
        key, decoded = decode_key(row), store.value.deserialize(value)
        record = dict(key._asdict()) if isinstance(key, Windowed) else {"key": key}
        record |= decoded if isinstance(decoded, dict) else {"value": decoded}
        records.append(record | {"timestamp": timestamp})
    return pd.DataFrame.from_records(records)

