"""Window and session stores as processors see them, in the order in which Kafka Streams gives their rows."""

import struct
from typing import Any

from streamskit.api.windows import FOREVER, SlidingWindows, TimeWindows, UnlimitedWindows, Windowed
from streamskit.common.errors import StreamsError
from streamskit.operators.bytes_timed_stores import BytesSessionStore, BytesWindowStore, Session
from streamskit.operators.key_value_iterator import KeyValueIterator
from streamskit.operators.state_store import StateStore, StoreAccess
from streamskit.operators.stream_task import OperatorContext
from streamskit.state.stores import KeyValue, Store


class ProcessorWindowStore(StateStore):
    """Window store of a processor; a window is identified by its start in milliseconds.

    Mirrors `org.apache.kafka.streams.state.WindowStore`, and `TimestampedWindowStore`.
    """

    def __init__(self, context: OperatorContext, store: Store, access: StoreAccess) -> None:
        super().__init__(store, access)
        if store.retention is None or not isinstance(store.windows, TimeWindows | SlidingWindows | UnlimitedWindows):
            raise StreamsError(f"Store '{self.name}' has no windows: make it with Stores.persistent_window_store().")
        self._windows = BytesWindowStore(context, access.table, store.retention)
        self._size, self._drop = store.windows.size, context.drop

    def put_row(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a row of a table: its bytes, without the changelog."""
        start = int.from_bytes(key[-8:], "big", signed=True)
        self._windows.put(key[:-8], None if value is None else (value, timestamp), start)

    def put(self, key: Any, value: Any, start: int) -> None:
        """Set the value of a key's window that begins at `start`; None deletes it.

        A window that arrives after the store has discarded its time is counted as dropped: in memory that is after the
        retention, otherwise once the time segment it belongs to has been deleted.
        """
        data, stored, start = self._key(key), self._write_value(value), self._time("start", start)
        self._log(data + struct.pack(">qi", start, 0), stored)
        self._windows.put(data, stored, start)
        if self._windows.is_forgotten(start) if self._store.persistent else not self._windows.is_in_sight(start):
            self._drop()

    def fetch(self, key: Any, time_from: int, time_to: int | None = None) -> Any:
        """Return the value of the window that begins at a time; with `time_to` pairs of start and value.

        Args:
            key: the key.
            time_from: in milliseconds.
            time_to: likewise; windows that begin between the two, both included, are returned in order.
        """
        first = self._time("time_from", time_from)
        if time_to is None:
            return self._read_value(self._windows.fetch(self._key(key), first))
        windows = self._windows.fetch_range(self._key(key), first, self._time("time_to", time_to))
        return KeyValueIterator(self.name, [(start, self._read_value(value)) for start, value in windows])

    def backward_fetch(self, key: Any, time_from: int, time_to: int) -> KeyValueIterator[tuple[int, Any]]:
        """Return what `fetch` returns for two times, the latest window first."""
        return KeyValueIterator(self.name, [*self.fetch(key, time_from, self._time("time_to", time_to))][::-1])

    def fetch_range(self, key_from: Any, key_to: Any, time_from: int, time_to: int) -> KeyValueIterator[KeyValue]:
        """Return the windows of the keys from one to another that begin between two times, with `Windowed` keys.

        A persistent store goes by key and then by start, within each segment of time; one in memory by start and then
        by key.

        Args:
            key_from: the first key; None leaves that end open.
            key_to: the last key, which is included; None leaves that end open.
            time_from: in milliseconds.
            time_to: likewise, included.

        Mirrors `WindowStore#fetch(keyFrom, keyTo, timeFrom, timeTo)`.
        """
        return KeyValueIterator(self.name, self._between(key_from, key_to, time_from, time_to))

    def backward_fetch_range(
        self, key_from: Any, key_to: Any, time_from: int, time_to: int
    ) -> KeyValueIterator[KeyValue]:
        """Return the windows of `fetch_range`, the last first."""
        return KeyValueIterator(self.name, self._between(key_from, key_to, time_from, time_to)[::-1])

    def fetch_all(self, time_from: int, time_to: int) -> KeyValueIterator[KeyValue]:
        """Return the windows of all keys that begin between two times, in the order of `fetch_range`."""
        return self.fetch_range(None, None, time_from, time_to)

    def backward_fetch_all(self, time_from: int, time_to: int) -> KeyValueIterator[KeyValue]:
        """Return the windows of `fetch_all`, the last first."""
        return self.backward_fetch_range(None, None, time_from, time_to)

    def all(self) -> KeyValueIterator[KeyValue]:
        """Return every window that is kept, in the order of `fetch_range`."""
        return self.fetch_all(-1, FOREVER)

    def backward_all(self) -> KeyValueIterator[KeyValue]:
        """Return every window that is kept, the last first."""
        return self.backward_fetch_all(-1, FOREVER)

    def _between(self, key_from: Any, key_to: Any, time_from: int, time_to: int) -> list[KeyValue]:
        is_meant, size = self._key_range(key_from, key_to), self._size
        first, last = self._time("time_from", time_from), self._time("time_to", time_to)
        windows = [window for window in self._windows.fetch_all(first, last) if is_meant(window[0])]
        if self._store.persistent:
            # On disk a row is the bytes of its key and of its time: a key need not come before one that it begins.
            segment = self._windows.segment
            windows.sort(key=lambda window: (segment(window[1]), window[0] + struct.pack(">q", window[1])))
        else:
            windows.sort(key=lambda window: (window[1], window[0]))
        read_key = self._store.key.deserialize
        return [
            KeyValue(Windowed(read_key(key), start, start + size), self._read_value(value))
            for key, start, value in windows
        ]


class ProcessorSessionStore(StateStore):
    """Session store of a processor. Mirrors `org.apache.kafka.streams.state.SessionStore`."""

    def __init__(self, context: OperatorContext, store: Store, access: StoreAccess) -> None:
        super().__init__(store, access)
        if store.retention is None:
            raise StreamsError(f"Store '{self.name}' has no retention: make it with Stores.persistent_session_store().")
        self._sessions, self._drop = BytesSessionStore(context, access.table, store.retention), context.drop

    def put_row(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a row of a table: its bytes, without the changelog."""
        end, start = (int.from_bytes(part, "big", signed=True) for part in (key[-16:-8], key[-8:]))
        self._sessions.put(key[:-16], start, end, value)

    def put(self, session: Windowed, value: Any) -> None:
        """Set the value of a key's session; None deletes it.

        A session that arrives after the store has discarded its time is counted as dropped: in memory that is after the
        retention, otherwise once the time segment it belongs to has been deleted.

        Args:
            session: the key, and the times of the session's first and last record in milliseconds.
            value: the new value.

        Raises:
            StreamsError: it is no `Windowed`, or it ends before it starts, or starts before 1970.
        """
        end = self._put(session, value)
        if self._sessions.is_forgotten(end) if self._store.persistent else not self._sessions.is_in_sight(end):
            self._drop()

    def remove(self, session: Windowed) -> None:
        """Delete a key's session. In a persistent store its end counts as a time that the store has seen."""
        self._put(session, None, is_seen=self._store.persistent)

    def _put(self, session: Windowed, value: Any, is_seen: bool = True) -> int:
        """Set or delete a session, and return when it ends."""
        if not isinstance(session, Windowed):
            raise StreamsError(
                f"Store '{self.name}' keeps sessions, each known by its key, start and end: give put() and remove() a "
                f"Windowed(key, start, end), and not {session!r}."
            )
        data, stored = self._key(session.key), self._write_value(value)
        start, end = self._time("the start of a session", session.start), self._time("its end", session.end)
        if not 0 <= start <= end:
            raise StreamsError(
                f"Store '{self.name}': no session starts at {start} and ends at {end}. Windowed takes the "
                "key, the start and the end, both in milliseconds since 1970."
            )
        self._log(data + struct.pack(">qq", end, start), stored)
        if is_seen:
            self._sessions.put(data, start, end, stored)
        else:
            self._sessions.remove(data, start, end)
        return end

    def fetch(self, key: Any) -> KeyValueIterator[KeyValue]:
        """Return all sessions of `key`, the one that ended first coming first."""
        return self.find_sessions(key, 0, FOREVER)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """Return the value of the session of `key` with this start and end, or None."""
        first, last = self._time("start", start), self._time("end", end)
        sessions = self._sessions.find_sessions(self._key(key), last, first)
        return next((self._read_value(value) for *times, value in sessions if times == [last, first]), None)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> KeyValueIterator[KeyValue]:
        """Return the sessions of `key` that end at a time or later and begin at another or earlier, by their ends.

        Of those that end at the same time, a persistent store returns first the one that began first, and an in-memory
        store the one that began last.
        """
        data = self._key(key)
        least, most = self._time("earliest_end", earliest_end), self._time("latest_start", latest_start)
        return self._listed([(data, session) for session in self._sessions.find_sessions(data, least, most)])

    def fetch_range(self, key_from: Any, key_to: Any) -> KeyValueIterator[KeyValue]:
        """Return all sessions of the keys from one to another, in the order of `find_sessions_range`.

        Mirrors `SessionStore#fetch(keyFrom, keyTo)`.
        """
        return self.find_sessions_range(key_from, key_to, 0, FOREVER)

    def find_sessions_range(
        self, key_from: Any, key_to: Any, earliest_end: int, latest_start: int
    ) -> KeyValueIterator[KeyValue]:
        """Return the sessions of many keys that end at a time or later and begin at another or earlier.

        A persistent store goes by key and then by end, within each segment of time; one in memory by end and then by
        key.

        Args:
            key_from: the first key; None leaves that side open.
            key_to: the last key, which is included; None leaves that side open.
            earliest_end: in milliseconds.
            latest_start: likewise.

        Mirrors `SessionStore#findSessions(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime)`.
        """
        if key_from is not None and key_from == key_to:
            return self.find_sessions(key_from, earliest_end, latest_start)
        is_meant = self._key_range(key_from, key_to)
        least, most = self._time("earliest_end", earliest_end), self._time("latest_start", latest_start)
        return self._listed([each for each in self._sessions.find_all(least, most) if is_meant(each[0])])

    def _listed(self, found: list[tuple[bytes, Session]]) -> KeyValueIterator[KeyValue]:
        """Return sessions that were found, each with its key, in the order in which Kafka Streams lists them."""
        if self._store.persistent:
            segment = self._sessions.segment
            found.sort(key=lambda each: (segment(each[1][0]), each[0] + struct.pack(">qq", *each[1][:2])))
        else:
            found.sort(key=lambda each: (each[1][0], each[0], -each[1][1]))
        read_key = self._store.key.deserialize
        return KeyValueIterator(
            self.name,
            [
                KeyValue(Windowed(read_key(key), start, end), self._read_value(value))
                for key, (end, start, value) in found
            ],
        )
