"""State stores of windows and sessions for the operators: bytes, under the names of Kafka Streams' stores.

Rows are hidden, and later deleted, once their windows or sessions are older than the retention.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamskit.operators.bytes_stores import BytesKeyValueStore, put_row
from streamskit.operators.stream_task import OperatorContext

SEGMENT = 60_000
"""Kafka Streams deletes old rows in segments of half the retention, but no less than so many milliseconds."""

Session = tuple[int, int, Any]
"""End, start and value of one session of a key; both times are included, and sessions are in order of their ends."""


class BytesWindowStore:
    """Window store of bytes: keys, window starts and values. Mirrors `org.apache.kafka.streams.state.WindowStore`.

    A window is hidden once the store has seen one that starts a retention later, and its memory is released when its
    page is next written.

    Args:
        context: of the operator whose state it is part of.
        name: the store's name.
        retention: in milliseconds.
        by_time: also keeps the windows in the order of their starts, to emit them when they close. Such a store shows
            windows for one millisecond longer.
        emits_old: whether a window that becomes hidden as it closes is emitted, since it is still in the record cache.
    """

    def __init__(
        self, context: OperatorContext, name: str, retention: int, by_time: bool = False, emits_old: bool = False
    ) -> None:
        self._table = context.table(name, self._expire)
        self._memory = context.task.memory.of(name)
        self._memory.setdefault("latest start", -1)
        self._reach = retention if by_time else retention - 1
        self._retention, self._segment = retention, max(retention // 2, SEGMENT)
        self._by_time = context.time_ordered_map(f"{name}/starts", retention) if by_time else None
        self._emits_old = emits_old

    def put(self, key: bytes, value: Any, start: int) -> None:
        """Set the value of a key's window; None deletes it."""
        windows = self.windows_of(key)
        if start not in windows:
            self.begin(key, windows, start)
        elif start > self._memory["latest start"]:
            self._memory["latest start"] = start
        put_row(windows, start, value)

    def put_open(self, key: bytes, value: Any, start: int) -> None:
        """Set the value of a window that does not make other windows expire until it is `put`."""
        put_row(self.windows_of(key), start, value)

    def windows_of(self, key: bytes) -> dict[int, Any]:
        """Return the windows of a key by their starts, to be changed; before one is added, `begin` it."""
        rows = self._table.changed_page(key)
        windows: dict[int, Any] | None = rows.get(key)
        if windows is None:
            windows = rows[key] = {}
        return windows

    def begin(self, key: bytes, windows: dict[int, Any], start: int) -> None:
        """Note that a window is about to be added to those of a key."""
        if start > self._memory["latest start"]:
            self._memory["latest start"] = start
        if self._by_time is not None:
            self._by_time.put((start, key), True)
        # Whenever a key's windows have doubled, those that are too old are deleted: a small cost for each window.
        size = len(windows)
        if size >= 16 and size & (size - 1) == 0:
            self._expire(windows)

    def fetch(self, key: bytes, start: int) -> Any:
        """Return the value of a key's window that starts at a time, or None."""
        windows = self._table.page(key).get(key)
        return windows.get(start) if windows is not None and self.is_in_sight(start) else None

    def is_in_sight(self, start: int) -> bool:
        """Return whether a window that starts at a time can be fetched, if it exists."""
        return start >= self._oldest_start()

    def is_forgotten(self, start: int) -> bool:
        """Return whether a window that starts at a time is in a segment that Kafka Streams has deleted."""
        oldest: int = self._memory["latest start"] - self._retention
        return self.segment(start) < self.segment(oldest)

    def fetch_range(self, key: bytes, first: int, last: int) -> list[tuple[int, Any]]:
        """Return starts and values of a key's windows that start between two times, both included, in order.

        Mirrors `WindowStore#fetch(key, timeFrom, timeTo)`.
        """
        windows = self._table.page(key).get(key)
        if windows is None:
            return []
        first = max(first, self._oldest_start())
        return [(start, windows[start]) for start in sorted(windows) if first <= start <= last]

    def fetch_all(self, first: int, last: int) -> list[tuple[bytes, int, Any]]:
        """Return key, start and value of all windows that start between two times, by key and then by start."""
        return [(key, *window) for key, _ in self._table.items() for window in self.fetch_range(key, first, last)]

    def segment(self, start: int) -> int:
        """Return the number of the segment that has the windows that start at a time."""
        return start // self._segment

    def take_closed(self, last: int) -> Iterator[tuple[bytes, int, Any]]:
        """Yield, once, key, start and value of the windows that start no later than `last`, by start and key.

        Hidden windows are skipped, unless the store `emits_old`. Needs a store `by_time`.

        Raises:
            ValueError: it is no such store.
        """
        if self._by_time is None:
            raise ValueError("Only a store by time knows its closed windows: make it with by_time=True.")
        for (start, key), _ in self._by_time.take_until(last):
            value = self._table.page(key).get(key, {}).get(start)
            if value is not None and (self._emits_old or self.is_in_sight(start)):
                yield key, start, value

    def _oldest_start(self) -> int:
        oldest: int = self._memory["latest start"] - self._reach
        return oldest

    def _expire(self, windows: dict[int, Any]) -> None:
        oldest = self._oldest_start()
        if self._emits_old and self._by_time is not None and (first := self._by_time.first_time()) is not None:
            oldest = min(oldest, first)
        for start in [start for start in windows if start < oldest]:
            del windows[start]


class RowRetention(NamedTuple):
    """For how long the rows of a windowed table can be looked up, in milliseconds, and whether they are sessions.

    `from_close` says that only windows that have been emitted, not those still open, make a row expire.
    """

    milliseconds: int
    is_session: bool
    from_close: bool = False


class BytesWindowedRows(BytesKeyValueStore):
    """Rows of a windowed table by key and window, which are hidden after the retention of the table's store.

    Args:
        context: of the operator whose state it is part of.
        name: the table's name.
        retention: that of the store from which Kafka Streams would take the rows.
    """

    def __init__(self, context: OperatorContext, name: str, retention: RowRetention) -> None:
        self._store, self._is_session = BytesWindowStore(context, name, retention.milliseconds), retention.is_session
        self._put_open = self._store.put_open if retention.from_close else self._store.put

    def get(self, key: bytes) -> Any:
        """Return the row of a windowed key, or None."""
        return self._store.fetch(*self._split(key))

    def put(self, key: bytes, value: Any) -> None:
        """Set the row of a windowed key; None deletes it."""
        inner, time = self._split(key)
        self._store.put(inner, value, time)

    def put_open(self, key: bytes, value: Any) -> None:
        """Set the row of a windowed key that has not been emitted yet."""
        inner, time = self._split(key)
        self._put_open(inner, value, time)

    def _split(self, key: bytes) -> tuple[bytes, int]:
        """Return what distinguishes rows of one time, and that time: the start of a window, or the end of a session."""
        if self._is_session:
            return key[:-16] + key[-8:], int.from_bytes(key[-16:-8], "big", signed=True)
        return key[:-8], int.from_bytes(key[-8:], "big", signed=True)


def rows_of_table(context: OperatorContext, name: str, retention: RowRetention | None) -> BytesKeyValueStore:
    """Return the store of a table's rows that an operator looks up, with the retention of a windowed table, if any."""
    if retention is None:
        return BytesKeyValueStore(context.table(name))
    return BytesWindowedRows(context, name, retention)


class BytesSessionStore:
    """Session store of bytes: keys, sessions and values. Mirrors `org.apache.kafka.streams.state.SessionStore`.

    Args:
        context: of the operator whose state it is part of.
        name: the store's name.
        retention: in milliseconds; older sessions are not found any more.
        by_time: also keeps the sessions in the order of their ends, to emit them when they close.
    """

    def __init__(self, context: OperatorContext, name: str, retention: int, by_time: bool = False) -> None:
        self._table = context.table(name, self._expire)
        self._memory = context.task.memory.of(name)
        self._memory.setdefault("latest end", -1)
        self._retention, self._segment = retention, max(retention // 2, SEGMENT)
        self._by_time = context.time_ordered_map(f"{name}/ends", retention) if by_time else None

    def find_sessions(self, key: bytes, earliest_end: int, latest_start: int) -> list[Session]:
        """Return a key's sessions that end at a time or later and start at another or earlier, in order."""
        sessions: list[Session] | None = self._table.page(key).get(key)
        if not sessions:
            return []
        earliest_end = max(earliest_end, self._memory["latest end"] - self._retention + 1)
        # The sessions that matter are nearly always the last ones.
        if sessions[-1][0] < earliest_end:
            return []
        first = bisect_left(sessions, (earliest_end,))
        return [session for session in sessions[first:] if session[1] <= latest_start]

    def find_all(self, earliest_end: int, latest_start: int) -> list[tuple[bytes, Session]]:
        """Return the sessions of all keys, as `find_sessions` does for one, by key."""
        keys = [key for key, _ in self._table.items()]
        return [(key, session) for key in keys for session in self.find_sessions(key, earliest_end, latest_start)]

    def segment(self, end: int) -> int:
        """Return the number of the segment that has the sessions that end at a time."""
        return end // self._segment

    def is_forgotten(self, end: int) -> bool:
        """Return whether a session that ends at a time is in a segment that Kafka Streams has deleted."""
        oldest: int = self._memory["latest end"] - self._retention
        return self.segment(end) < self.segment(oldest)

    def is_in_sight(self, end: int) -> bool:
        """Return whether a session that ends at a time can be found, if it exists."""
        latest: int = self._memory["latest end"]
        return end > latest - self._retention

    def put(self, key: bytes, start: int, end: int, value: Any) -> None:
        """Set the value of a key's session; None deletes it."""
        if end > self._memory["latest end"]:
            self._memory["latest end"] = end
        if value is None:
            return self.remove(key, start, end)
        sessions: list[Session] = self._table.changed_page(key).setdefault(key, [])
        index, place = len(sessions), (end, start)
        if sessions and sessions[-1][:2] >= place:  # usually a session comes after all others
            index = bisect_left(sessions, place)
            if sessions[index][:2] == place:
                sessions[index] = (end, start, value)
                return None
        sessions.insert(index, (end, start, value))
        if self._by_time is not None:
            self._by_time.put((end, start, key), True)
        # Whenever a key's sessions have doubled, those that are too old are deleted: a small cost for each session.
        size = len(sessions)
        if size >= 16 and size & (size - 1) == 0:
            self._expire(sessions)
            if not sessions:  # all of them were too old, this one too
                del self._table.changed_page(key)[key]
        return None

    def remove(self, key: bytes, start: int, end: int) -> None:
        """Delete a key's session, if it exists."""
        rows = self._table.changed_page(key)
        sessions: list[Session] = rows.get(key, [])
        index = bisect_left(sessions, (end, start))
        if index < len(sessions) and sessions[index][:2] == (end, start):
            del sessions[index]
            if not sessions:
                del rows[key]
            if self._by_time is not None:
                self._by_time.pop((end, start, key))

    def take_closed(self, last: int) -> Iterator[tuple[bytes, Session]]:
        """Yield, once, the sessions that end no later than `last`, in the order of end, start and key.

        Needs a store `by_time`.

        Raises:
            ValueError: it is no such store.
        """
        if self._by_time is None:
            raise ValueError("Only a store by time knows its closed sessions: make it with by_time=True.")
        for (end, start, key), _ in self._by_time.take_until(last):
            sessions: list[Session] = self._table.page(key).get(key, [])
            index = bisect_left(sessions, (end, start))
            is_there = index < len(sessions) and sessions[index][:2] == (end, start)
            if is_there and end >= self._oldest_end():
                yield key, sessions[index]

    def _oldest_end(self) -> int:
        latest: int = self._memory["latest end"]
        return (latest - self._retention) // self._segment * self._segment

    def _expire(self, sessions: list[Session]) -> None:
        oldest = self._oldest_end()
        sessions[:] = [session for session in sessions if session[0] >= oldest]
