"""Stores of windows and sessions that are somewhere else, with the methods of the local ones."""

from collections.abc import Iterator
from typing import Any

from streamskit.queries.client.stores import RemoteStore
from streamskit.queries.rest.protocol import path
from streamskit.state.stores import KeyValue
from streamskit.state.timed import Time, milliseconds

Windows = list[tuple[int, Any]]


class RemoteWindowStore(RemoteStore):
    """A table of keys, windows and values, somewhere else.

    Mirrors `org.apache.kafka.streams.state.ReadOnlyWindowStore`.
    """

    def fetch(self, key: Any, time_from: Time, time_to: Time | None = None) -> Any:
        """Return the windows of `key` that start between two times, or the value of the one that starts at a time.

        Args:
            key: the key.
            time_from: a datetime, or milliseconds since 1970.
            time_to: likewise, included; without it the value of the window that starts at `time_from`, or None.
        """
        if time_to is not None:
            return self._windows(key, time_from, time_to, False)
        row = self._ask(path("state", "windowed", self.name, self._text(key), str(milliseconds(time_from))))
        return None if row is None else self._value(row)

    def backward_fetch(self, key: Any, time_from: Time, time_to: Time) -> Windows:
        """Return the windows of `key` that start between two times, the latest first."""
        return self._windows(key, time_from, time_to, True)

    def fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of the keys from one to another that start between two times, by key and then by time."""
        return list(self._range(key_from, key_to, time_from, time_to, False))

    def backward_fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of `fetch_range`, the last first."""
        return list(self._range(key_from, key_to, time_from, time_to, True))

    def fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of all keys that start between two times, both included, by key and then by time."""
        return list(self._range(None, None, time_from, time_to, False))

    def backward_fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of `fetch_all`, the last first."""
        return list(self._range(None, None, time_from, time_to, True))

    def backward_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return list(self.each(reverse=True))

    def _everything(self) -> tuple[str, ...]:
        return ("state", "windows", self.name)

    def _windows(self, key: Any, first: Time, last: Time, reverse: bool) -> Windows:
        parts = ("state", "windowed", self.name, self._text(key), *_times(first, last))
        return [(row["window"]["start"], self._value(row)) for row in self._rows(parts, reverse=reverse)]

    def _range(self, key_from: Any, key_to: Any, first: Time, last: Time, reverse: bool) -> Iterator[KeyValue]:
        keys = {"key_from": self._open_text(key_from), "key_to": self._open_text(key_to)}
        return self._pairs(("state", "windows", self.name, *_times(first, last)), **keys, reverse=reverse)


class RemoteSessionStore(RemoteStore):
    """A table of keys, sessions and values, somewhere else.

    Mirrors `org.apache.kafka.streams.state.ReadOnlySessionStore`.
    """

    def fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the earliest first."""
        return list(self._pairs(("state", "sessions", self.name, self._text(key))))

    def backward_fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the latest first."""
        return list(self._pairs(("state", "sessions", self.name, self._text(key)), reverse=True))

    def fetch_session(self, key: Any, start: Time, end: Time) -> Any:
        """Return the value of the session of `key` with exactly this start and end, or None."""
        times = {"start": milliseconds(start), "end": milliseconds(end)}
        found = list(self._rows(("state", "sessions", self.name, self._text(key)), **times))
        return self._value(found[0]) if found else None

    def find_sessions(self, key: Any, earliest_end: Time, latest_start: Time) -> list[KeyValue]:
        """Return the sessions of `key` that end at a time or later and start at a time or earlier."""
        first, last = milliseconds(earliest_end), milliseconds(latest_start)
        return [session for session in self.fetch(key) if session.key.end >= first and session.key.start <= last]

    def fetch_range(self, key_from: Any, key_to: Any) -> list[KeyValue]:
        """Return all sessions of the keys from one to another, by key and then by time."""
        keys = {"key_from": self._open_text(key_from), "key_to": self._open_text(key_to)}
        return list(self._pairs(self._everything(), **keys))

    def backward_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return list(self.each(reverse=True))

    def _everything(self) -> tuple[str, ...]:
        return ("state", "sessions", self.name)


def _times(first: Time, last: Time) -> tuple[str, str]:
    return str(milliseconds(first)), str(milliseconds(last))
