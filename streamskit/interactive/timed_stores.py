"""Local copies of stores whose rows belong to a time, and are gone when it is long past: windows and sessions."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any, ClassVar

from streamskit.interactive.stores import LocalStore, Partition
from streamskit.stores import KeyValue, Store
from streamskit.windows import SessionWindows, Windowed

Time = int | datetime


class TimedStore(LocalStore):
    """What stores of windows and sessions share: rows that begin with the key's bytes and hold a time.

    A row whose time is a retention or more before the latest one of its partition is gone.
    """

    time_at: ClassVar[int] = 1
    """The place of the time in a row."""

    def __init__(self, store: Store, usual_length: int) -> None:
        super().__init__(store)
        if store.retention is None:
            raise ValueError(f"Store '{store.name}' has no retention: say for how long it keeps its rows.")
        self._retention, self._usual_length = store.retention, max(1, usual_length)
        self._purged = -1

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool]) -> Iterable[tuple[Any, Partition]]:
        newest = max((partition.stream_time for partition in self._partitions.values()), default=0)
        reach, at, found = self._usual_length, self.time_at, list[tuple[Any, Partition]]()
        # Comparing the times of all rows is quick, sorting them is not: go back only as far as it takes.
        while len(found) < rows and reach < 10 * (self._retention + self._usual_length):
            found = []
            for partition in self._partitions.values():
                since = max(newest - reach, partition.stream_time - self._retention + 1)
                found += [(row, partition) for row in partition.rows if row[at] >= since and is_wanted(row[0])]
            reach *= 10
        return nsmallest(rows, found, key=lambda pair: (-pair[0][at], pair[0]))

    def _is_kept(self, partition: Partition, row: Any) -> bool:
        return row[self.time_at] > partition.stream_time - self._retention

    def _advance(self, partition: Partition, row: Any) -> None:
        partition.stream_time = max(partition.stream_time, row[self.time_at])
        # Looking for old rows at every update would cost more than keeping them, unseen, a little longer.
        if partition.stream_time - self._purged > max(self._retention, 60_000):
            self._purged = partition.stream_time
            for old in [row for row in partition.rows if not self._is_kept(partition, row)]:
                del partition.rows[old]


class WindowStore(TimedStore):
    """A table of keys, windows and values; a window's time is its start.

    Mirrors `org.apache.kafka.streams.state.ReadOnlyWindowStore`.
    """

    def __init__(self, store: Store) -> None:
        if store.windows is None or isinstance(store.windows, SessionWindows):
            raise ValueError(f"Store '{store.name}' has no windows: it is a {store.kind} store.")
        self._size = store.windows.size
        super().__init__(store, self._size)

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
            return self._find((inner, start))
        rows = self._snapshot((inner, start), (inner, milliseconds(time_to)))
        return [(row[1], self._store.value.deserialize(value)) for row, (value, _) in rows]

    def fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of all keys that start between two times, both included."""
        first, last = milliseconds(time_from), milliseconds(time_to)
        return [
            KeyValue(self._decode_key(row), self._store.value.deserialize(value))
            for row, (value, _) in self._snapshot(None, None)
            if first <= row[1] <= last
        ]

    def _row(self, key: bytes) -> tuple[bytes, int]:
        return key[:-12], int.from_bytes(key[-12:-4], "big", signed=True)

    def _decode_key(self, row: tuple[bytes, int]) -> Windowed:
        return Windowed(self._store.key.deserialize(row[0]), row[1], row[1] + self._size)


class SessionStore(TimedStore):
    """A table of keys, sessions and values; a session's time is its end.

    Mirrors `org.apache.kafka.streams.state.ReadOnlySessionStore`.
    """

    time_at = 2

    def __init__(self, store: Store) -> None:
        super().__init__(store, store.windows.gap if isinstance(store.windows, SessionWindows) else 1)

    def fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the earliest first.

        >>> streams.store("visits").fetch("alice")
        [KeyValue(key=Windowed(key='alice', start=0, end=900), value=3)]
        """
        inner = self._key_bytes(key)
        return list(self._read((inner,), (inner, 2**63)))

    def _row(self, key: bytes) -> tuple[bytes, int, int]:
        end, start = (int.from_bytes(part, "big", signed=True) for part in (key[-16:-8], key[-8:]))
        return key[:-16], start, end

    def _decode_key(self, row: tuple[bytes, int, int]) -> Windowed:
        return Windowed(self._store.key.deserialize(row[0]), row[1], row[2])


def milliseconds(time: Time) -> int:
    """Return a time as milliseconds since 1970; a datetime without a zone is UTC."""
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    return int(time)
