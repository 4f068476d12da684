"""The queries of a store, wherever it is: Kafka Streams' read-only stores, both local and remote."""

import copy
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

from streamskit.serdes import Serde
from streamskit.state.stores import KeyValue

Time = int | datetime
"""Milliseconds since 1970, or a datetime; one without a zone is UTC."""

Windows = list[tuple[int, Any]]
"""The starts of windows, each with its value."""

Selection = TypeVar("Selection")
"""A selection of rows in order: a range of bytes for a local store, a path for a remote one."""


class VersionedRecord(NamedTuple):
    """A value and the time from which it was valid, in milliseconds since 1970.

    `valid_to` is the time at which another version or a deletion replaced it. Only lists of versions say it, as in
    Kafka Streams; it is None for the latest version, and in what `get` returns.
    Mirrors `org.apache.kafka.streams.state.VersionedRecord`.
    """

    value: Any
    timestamp: int
    valid_to: int | None = None

    def __repr__(self) -> str:
        until = "" if self.valid_to is None else f", valid_to={self.valid_to}"
        return f"VersionedRecord(value={self.value!r}, timestamp={self.timestamp}{until})"


class ReadOnlyStore(ABC, Generic[Selection]):
    """What all stores share: a subclass says how rows are selected and read."""

    name: str
    kind: str
    _timestamped = False

    def with_timestamps(self) -> Self:
        """Return a view whose values come with the time they were set: `ValueAndTimestamp`.

        What the store takes in later is in the view as well.

        Mirrors `QueryableStoreTypes#timestampedKeyValueStore` and `timestampedWindowStore`.
        """
        view = copy.copy(self)
        view._timestamped = True
        return view

    def all(self) -> list[KeyValue]:
        """Return every row; those of a key-value store in the order of the keys' bytes. Mirrors the stores' `all()`."""
        return self._pairs(self.everything())

    @abstractmethod
    def approximate_num_entries(self) -> int:
        """Return the number of rows; for a store on disk, approximately.

        Mirrors `ReadOnlyKeyValueStore#approximateNumEntries`.
        """

    @abstractmethod
    def everything(self, reverse: bool = False) -> Selection:
        """Return the selection of all rows."""

    @abstractmethod
    def _pairs(self, selection: Selection) -> list[KeyValue]:
        """Return the selected rows."""

    if not TYPE_CHECKING:  # a type checker is to go on refusing what there is not

        def __getattr__(self, name: str) -> Any:
            """Explain that a store of this kind does not have what a program asks it for."""
            if name.startswith("_") or not {"name", "kind"} <= self.__dict__.keys():
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            kinds = [each for each in type(self).__mro__ if each.__module__ == __name__]
            has = sorted({each for kind in kinds for each in vars(kind) if not each.startswith("_")})
            raise AttributeError(
                f"Store '{self.name}' is a {self.kind} store, which has no '{name}'; it has: {', '.join(has)}."
            )

    def _named(self, key: Any) -> Any:
        """Return a key, unless it is None."""
        if key is None:
            raise ValueError(f"Store '{self.name}' has no row with the key None: name a key.")
        return key


class ReadOnlyKeyValueStore(ReadOnlyStore[Selection]):
    """A table of keys and values. Mirrors `org.apache.kafka.streams.state.ReadOnlyKeyValueStore`."""

    @abstractmethod
    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None if there is none.

        >>> streams.store("counts").get("KO")
        42
        """

    def range(self, first: Any = None, last: Any = None) -> list[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included, in the order of their bytes.

        A bound that is None is open; if `last` comes before `first`, there are no rows.
        """
        return self._pairs(self.between(first, last))

    def reverse_range(self, first: Any = None, last: Any = None) -> list[KeyValue]:
        """Return the rows of `range`, the last first."""
        return self._pairs(self.between(first, last, reverse=True))

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> list[KeyValue]:
        """Return the rows whose keys' bytes begin with those of `prefix`, written by the store's serde or another."""
        if prefix is None:
            raise ValueError(f"Store '{self.name}': prefix_scan() needs a prefix; for all rows write all().")
        return self._pairs(self.with_prefix(prefix, serde))

    def reverse_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return self._pairs(self.everything(reverse=True))

    @abstractmethod
    def between(self, first: Any = None, last: Any = None, reverse: bool = False) -> Selection:
        """Return the selection of the rows of `range`."""

    @abstractmethod
    def with_prefix(self, prefix: Any, serde: Serde | None = None, reverse: bool = False) -> Selection:
        """Return the selection of the rows of `prefix_scan`."""


class ReadOnlyVersionedStore(ReadOnlyKeyValueStore[Selection]):
    """A table of keys, times and values; an update's time, not its arrival, decides which version is the latest.

    Lists have the latest version of each row. Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`.
    """

    @abstractmethod
    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        """Return the version of `key` that was valid at a time, the latest one when not given, or None.

        Args:
            key: the key.
            as_of: the time. What was replaced before the store's history begins is no longer known.

        >>> streams.store("prices").get("KO", as_of=1000)
        VersionedRecord(value=78.4, timestamp=900)
        """

    def versions(self, key: Any, time_from: Time | None = None, time_to: Time | None = None) -> list[VersionedRecord]:
        """Return the versions of `key` that were valid at some time between two times, the earliest first.

        Args:
            key: the key.
            time_from: a datetime, or milliseconds since 1970: a version that was replaced by then is left out. None
                leaves this side open.
            time_to: likewise, inclusive: a version that begins later is left out.

        Raises:
            ValueError: the first time is after the second.

        What was replaced before the store's history begins is no longer known.

        >>> streams.store("prices").versions("KO", 0, 1000)
        [VersionedRecord(value=77.9, timestamp=100, valid_to=900), VersionedRecord(value=78.4, timestamp=900)]

        Mirrors `MultiVersionedKeyQuery#withAscendingTimestamps`.
        """
        return self._versions(self.versions_between(key, time_from, time_to))

    def backward_versions(
        self, key: Any, time_from: Time | None = None, time_to: Time | None = None
    ) -> list[VersionedRecord]:
        """Return the versions of `versions`, the latest first.

        Mirrors `MultiVersionedKeyQuery#withDescendingTimestamps`.
        """
        return self._versions(self.versions_between(key, time_from, time_to, reverse=True))

    @abstractmethod
    def versions_between(
        self, key: Any, time_from: Time | None = None, time_to: Time | None = None, reverse: bool = False
    ) -> Selection:
        """Return the selection of the versions of `versions`."""

    @abstractmethod
    def _versions(self, selection: Selection) -> list[VersionedRecord]:
        """Return the selected versions."""

    def _between(self, time_from: Time | None, time_to: Time | None) -> list[int | None]:
        """Return two times in milliseconds; None leaves a side open."""
        first, last = (None if time is None else milliseconds(time) for time in (time_from, time_to))
        if first is not None and last is not None and first > last:
            raise ValueError(f"Store '{self.name}': from {first} to {last} is backwards; give the earlier time first.")
        return [first, last]


class ReadOnlyWindowStore(ReadOnlyStore[Selection]):
    """A table of keys, windows and values; a window's time is its start.

    Lists are sorted by key and then by time within each segment of time, which is half the store's retention but at
    least a minute. For stores in memory, and for windows that are emitted on close, they are sorted by time and then by
    key. Over REST, every list is sorted by key and then by time.

    Mirrors `org.apache.kafka.streams.state.ReadOnlyWindowStore`.
    """

    def fetch(self, key: Any, time_from: Time, time_to: Time | None = None) -> Any:
        """Return the windows of `key` that start between two times, or the value of the one that starts at a time.

        Args:
            key: the key.
            time_from: a datetime, or milliseconds since 1970.
            time_to: likewise, inclusive; without it you get the value of the window at `time_from`, or None.

        >>> streams.store("trade-aggregates").fetch("KO", 0, 60_000)
        [(0, {'count': 3}), (1000, {'count': 2})]
        """
        return self._value_at(key, time_from) if time_to is None else self._windows(key, time_from, time_to, False)

    def backward_fetch(self, key: Any, time_from: Time, time_to: Time) -> Windows:
        """Return the windows of `key` that start between two times, the latest first."""
        return self._windows(key, time_from, time_to, True)

    def fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows that start between two times, of all keys from one to another.

        Mirrors `ReadOnlyWindowStore#fetch(keyFrom, keyTo, timeFrom, timeTo)`.
        """
        return self._pairs(self.windows_between(key_from, key_to, time_from, time_to))

    def backward_fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of `fetch_range`, the last first."""
        return self._pairs(self.windows_between(key_from, key_to, time_from, time_to, reverse=True))

    def fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of all keys that start between two times, both included."""
        return self.fetch_range(None, None, time_from, time_to)

    def backward_fetch_all(self, time_from: Time, time_to: Time) -> list[KeyValue]:
        """Return the windows of `fetch_all`, the last first."""
        return self.backward_fetch_range(None, None, time_from, time_to)

    def backward_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return self._pairs(self.everything(reverse=True))

    @abstractmethod
    def windows(self, key: Any, time_from: Time, time_to: Time, reverse: bool = False) -> Selection:
        """Return the selection of the windows of `fetch`."""

    @abstractmethod
    def windows_between(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time, reverse: bool = False
    ) -> Selection:
        """Return the selection of the windows of `fetch_range`; a key that is None leaves that side open."""

    @abstractmethod
    def _value_at(self, key: Any, start: Time) -> Any:
        """Return the value of the window of `key` that starts at a time, or None."""

    def _windows(self, key: Any, time_from: Time, time_to: Time, reverse: bool) -> Windows:
        return [(pair.key.start, pair.value) for pair in self._pairs(self.windows(key, time_from, time_to, reverse))]


class ReadOnlySessionStore(ReadOnlyStore[Selection]):
    """A table of keys, sessions and values; a session's time is its end.

    Lists are in the order of a `ReadOnlyWindowStore`.

    Mirrors `org.apache.kafka.streams.state.ReadOnlySessionStore`.
    """

    def fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the earliest first.

        >>> streams.store("visits").fetch("alice")
        [KeyValue(key=Windowed(key='alice', start=0, end=900), value=3)]
        """
        return self._pairs(self.sessions(self._named(key)))

    def backward_fetch(self, key: Any) -> list[KeyValue]:
        """Return all sessions of `key`, the latest first."""
        return self._pairs(self.sessions(self._named(key), reverse=True))

    @abstractmethod
    def fetch_session(self, key: Any, start: Time, end: Time) -> Any:
        """Return the value of the session of `key` with exactly this start and end, or None."""

    def find_sessions(self, key: Any, earliest_end: Time, latest_start: Time) -> list[KeyValue]:
        """Return the sessions of `key` that end at a time or later and start at a time or earlier."""
        return _found(self.fetch(key), earliest_end, latest_start)

    def backward_find_sessions(self, key: Any, earliest_end: Time, latest_start: Time) -> list[KeyValue]:
        """Return the sessions of `find_sessions`, the latest first."""
        return _found(self.backward_fetch(key), earliest_end, latest_start)

    def find_sessions_range(self, key_from: Any, key_to: Any, earliest_end: Time, latest_start: Time) -> list[KeyValue]:
        """Return the sessions of the keys from one to another that `find_sessions` would find.

        Mirrors `ReadOnlySessionStore#findSessions(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime)`.
        """
        return _found(self.fetch_range(key_from, key_to), earliest_end, latest_start)

    def backward_find_sessions_range(
        self, key_from: Any, key_to: Any, earliest_end: Time, latest_start: Time
    ) -> list[KeyValue]:
        """Return the sessions of `find_sessions_range`, the last first."""
        return _found(self.backward_fetch_range(key_from, key_to), earliest_end, latest_start)

    def fetch_range(self, key_from: Any, key_to: Any) -> list[KeyValue]:
        """Return all sessions of the keys from one to another.

        Mirrors `ReadOnlySessionStore#fetch(keyFrom, keyTo)`.
        """
        return self._pairs(self.sessions_between(key_from, key_to))

    def backward_fetch_range(self, key_from: Any, key_to: Any) -> list[KeyValue]:
        """Return the sessions of `fetch_range`, the last first."""
        return self._pairs(self.sessions_between(key_from, key_to, reverse=True))

    def backward_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return self._pairs(self.everything(reverse=True))

    @abstractmethod
    def sessions(self, key: Any, reverse: bool = False) -> Selection:
        """Return the selection of the sessions of `fetch`."""

    @abstractmethod
    def sessions_between(self, key_from: Any, key_to: Any, reverse: bool = False) -> Selection:
        """Return the selection of the sessions of `fetch_range`; a key that is None leaves that side open."""


def milliseconds(time: Time) -> int:
    """Return a time as milliseconds since 1970; a datetime without a zone is UTC.

    Raises:
        ValueError: it is no time.
    """
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    try:
        return int(time)
    except (TypeError, ValueError):
        raise ValueError(f"{time!r} is no time: give milliseconds since 1970, or a datetime.") from None


def _found(sessions: list[KeyValue], earliest_end: Time, latest_start: Time) -> list[KeyValue]:
    """Return those sessions that end at a time or later and start at a time or earlier."""
    first, last = milliseconds(earliest_end), milliseconds(latest_start)
    return [session for session in sessions if session.key.end >= first and session.key.start <= last]
