"""Where a partition of a local store keeps its rows: `MemoryStorage` here, `RocksStorage` on the disk.

Rows are sorted bytes, divided into segments. A window store has one segment for each stretch of time, so that a whole
segment can be dropped when its time is past; any other store has only one.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from sortedcontainers import SortedList

Pair = tuple[bytes, bytes]
"""A row, and what it holds."""

CHUNK = 500
"""How many rows a scan takes at a time; between two chunks others may write."""


class RowChange(NamedTuple):
    """A row to write, or to delete where `packed` is None."""

    segment: int
    row: bytes
    packed: bytes | None


class ChangelogMark(NamedTuple):
    """How far a partition is filled: the changelog offset to continue from, and the latest time of its rows."""

    position: int = 0
    stream_time: int = -1


class Storage(Protocol):
    """The rows of one partition, written by one thread and read by any."""

    def mark(self) -> ChangelogMark:
        """Return the mark of the last write."""

    def segments(self) -> list[int]:
        """Return the numbers of the segments there are."""

    def get(self, segment: int, row: bytes) -> bytes | None:
        """Return what a row holds, or None."""

    def scan(self, segment: int, begin: bytes | None, end: bytes | None, reverse: bool) -> Iterator[Pair]:
        """Yield the rows from `begin` until before `end`, in order or backwards."""

    def write(self, changes: Sequence[RowChange], mark: ChangelogMark) -> None:
        """Write all changes and the mark, or none of them."""

    def drop(self, segment: int) -> None:
        """Delete a segment."""

    def clear(self) -> None:
        """Delete everything."""

    def count(self) -> int:
        """Return about how many rows there are."""

    def flush(self) -> None:
        """Write to the disk what is in memory only."""

    def close(self) -> None:
        """Release files."""


class _Segment:
    """A dict, with the order of its keys from the first scan on, because many stores are never scanned."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.order: SortedList[bytes] | None = None


class MemoryStorage:
    """Keeps rows in memory. Mirrors `org.apache.kafka.streams.state.internals.InMemoryKeyValueStore`."""

    def __init__(self) -> None:
        self._segments: dict[int, _Segment] = {}
        self._mark = ChangelogMark()
        self._changing = threading.Lock()

    def mark(self) -> ChangelogMark:
        return self._mark

    def segments(self) -> list[int]:
        return sorted(self._segments)

    def get(self, segment: int, row: bytes) -> bytes | None:
        found = self._segments.get(segment)
        return found.rows.get(row) if found is not None else None

    def scan(self, segment: int, begin: bytes | None, end: bytes | None, reverse: bool) -> Iterator[Pair]:
        while True:
            with self._changing:
                chunk = self._chunk(segment, begin, end, reverse)
            yield from chunk
            if len(chunk) < CHUNK:
                return
            if reverse:
                end = chunk[-1][0]
            else:
                begin = chunk[-1][0] + b"\0"

    def write(self, changes: Sequence[RowChange], mark: ChangelogMark) -> None:
        with self._changing:
            for segment, row, packed in changes:
                kept = self._segments.get(segment) or self._segments.setdefault(segment, _Segment())
                if kept.order is not None and (row in kept.rows) is (packed is None):
                    (kept.order.remove if packed is None else kept.order.add)(row)
                if packed is None:
                    kept.rows.pop(row, None)
                else:
                    kept.rows[row] = packed
            self._mark = mark

    def drop(self, segment: int) -> None:
        with self._changing:
            self._segments.pop(segment, None)

    def clear(self) -> None:
        with self._changing:
            self._segments, self._mark = {}, ChangelogMark()

    def count(self) -> int:
        return sum(len(segment.rows) for segment in list(self._segments.values()))

    def flush(self) -> None:
        """Do nothing: there is no disk to write to."""

    def close(self) -> None:
        """Do nothing: there are no files to release."""

    def _chunk(self, segment: int, begin: bytes | None, end: bytes | None, reverse: bool) -> list[Pair]:
        kept = self._segments.get(segment)
        if kept is None:
            return []
        if kept.order is None:
            kept.order = SortedList(kept.rows)
        found = kept.order.irange(begin, end, (True, False), reverse)
        return [(row, kept.rows[row]) for row, _ in zip(found, range(CHUNK), strict=False)]
