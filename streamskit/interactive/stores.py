"""Local copies of state stores, filled from their changelogs and read by queries."""

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from heapq import merge
from itertools import islice, repeat
from operator import itemgetter
from typing import Any

import pandas as pd
from sortedcontainers import SortedDict

from streamskit.stores import KeyValue, Store
from streamskit.windows import Windowed


class Partition:
    """The rows of one partition of a store, in the order of their bytes, and the stream time they have seen."""

    def __init__(self) -> None:
        self.rows: SortedDict[Any, tuple[bytes, int]] = SortedDict()
        self.stream_time = -1


class LocalStore:
    """What all local stores share: rows by partition, written by one thread and read by any.

    A row's value stays in its bytes until somebody asks for it. `updates` counts what was taken in; `stopped` says why
    no more will come, and is empty while more may.
    """

    def __init__(self, store: Store) -> None:
        self.name = store.name
        self.kind = store.kind
        self.updates = 0
        self.stopped = ""
        self._store = store
        self._partitions: dict[int, Partition] = {}
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return sum(len(partition.rows) for partition in self._partitions.values())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}': {len(self)} rows after {self.updates} updates>"

    def apply(self, key: bytes, value: bytes | None, timestamp: int, partition: int = 0) -> None:
        """Take one record of the changelog in; a null value deletes the row."""
        row = self._row(key)
        with self._changing:
            self.updates += 1
            kept = self._partitions.setdefault(partition, Partition())
            if value is None:
                kept.rows.pop(row, None)
            else:
                kept.rows[row] = (value, timestamp)
            self._advance(kept, row)

    def approximate_num_entries(self) -> int:
        """Return the number of rows. Mirrors `ReadOnlyKeyValueStore#approximateNumEntries`."""
        return len(self)

    def all(self) -> list[KeyValue]:
        """Return every row, partition by partition, in the order of the keys' bytes. Mirrors the stores' `all()`."""
        return list(self._read(None, None))

    def peek(self, rows: int, wanted: Callable[[Any], bool] | None = None) -> list[KeyValue]:
        """Return a few rows to look at: the first by key, or the newest windows; only their values are decoded.

        Args:
            rows: how many at most.
            wanted: says of a key (without its window) whether its rows may be among them; all may when not given.

        >>> streams.store("counts").peek(2, lambda key: key.startswith("K"))
        [KeyValue(key='KO', value=42), KeyValue(key='KR', value=7)]
        """
        is_wanted = cache(lambda key: wanted is None or wanted(self._store.key.deserialize(key)))
        with self._changing:
            found = [(row, partition.rows[row][0]) for row, partition in self._first(rows, is_wanted)]
        return [KeyValue(self._decode_key(row), self._store.value.deserialize(value)) for row, value in found]

    def to_pandas(self) -> pd.DataFrame:
        """Return every row as a data frame: the key (and its window), the value's fields, the last update's time."""
        records = []
        for row, (value, timestamp) in self._snapshot(None, None):
            key, decoded = self._decode_key(row), self._store.value.deserialize(value)
            record = dict(key._asdict()) if isinstance(key, Windowed) else {"key": key}
            record |= decoded if isinstance(decoded, dict) else {"value": decoded}
            records.append(record | {"timestamp": timestamp})
        return pd.DataFrame.from_records(records)

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool]) -> Iterable[tuple[Any, Partition]]:
        """Return the rows to look at first, each with its partition."""
        partitions = (zip(each.rows, repeat(each)) for each in self._partitions.values())
        return islice((pair for pair in merge(*partitions, key=itemgetter(0)) if is_wanted(pair[0])), rows)

    def _row(self, key: bytes) -> Any:
        return key

    def _decode_key(self, row: Any) -> Any:
        return self._store.key.deserialize(row)

    def _advance(self, partition: Partition, row: Any) -> None:
        """Note that a row of a partition has changed."""

    def _is_kept(self, partition: Partition, row: Any) -> bool:
        return True

    def _find(self, row: Any) -> Any:
        """Return the value of one row, or None."""
        with self._changing:
            for partition in self._partitions.values():
                found = partition.rows.get(row)
                if found is not None and self._is_kept(partition, row):
                    return self._store.value.deserialize(found[0])
        return None

    def _snapshot(self, first: Any, last: Any) -> list[tuple[Any, tuple[bytes, int]]]:
        with self._changing:
            return [
                (row, partition.rows[row])
                for _, partition in sorted(self._partitions.items())
                for row in partition.rows.irange(first, last)
                if self._is_kept(partition, row)
            ]

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
        return self._find(self._key_bytes(key))

    def range(self, first: Any, last: Any) -> list[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included, in the order of their bytes."""
        return list(self._read(self._key_bytes(first), self._key_bytes(last)))


class VersionedStore(KeyValueStore):
    """A table that knows which of two updates of a row is the later one, whatever their order.

    Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`, as far as its latest values.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._latest: dict[tuple[int, bytes], int] = {}

    def apply(self, key: bytes, value: bytes | None, timestamp: int, partition: int = 0) -> None:
        """Take one record of the changelog in, unless the row has a later version already."""
        if self._latest.get((partition, key), -1) <= timestamp:
            self._latest[partition, key] = timestamp
            super().apply(key, value, timestamp, partition)
