"""The stores that a processor sees: plain Python values over the tables of its task."""

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamskit.api.windows import TimeWindows, Windowed
from streamskit.common.errors import StreamsError
from streamskit.operators.changelog_buffer import ChangelogBuffer
from streamskit.operators.session_store import BytesSessionStore as Sessions
from streamskit.operators.stream_task import OperatorContext
from streamskit.operators.window_store import BytesWindowStore as Windows
from streamskit.serdes import Serde
from streamskit.state.stores import KeyValue, Store, ValueAndTimestamp

FOREVER = 2**63 - 1


class StateStore:
    """What all stores of a processor share: a name, and the serdes of its keys and values."""

    def __init__(self, store: Store, journal: ChangelogBuffer | None, read_only: bool = False) -> None:
        self.name = store.name
        self._store, self._journal, self._read_only = store, journal, read_only
        self._write_value, self._read_value = _value_codec(store)

    def _key(self, key: Any) -> bytes:
        if key is None:
            raise StreamsError(f"Store '{self.name}': a row cannot have the key None. Leave such records out first.")
        return self._store.key.serialize(key) or b""

    def _decode_key(self, data: bytes) -> Any:
        return self._store.key.deserialize(data)

    def _note(self, key: bytes, value: Any) -> None:
        """Tell the changelog of an update."""
        if self._read_only:
            raise StreamsError(
                f"Store '{self.name}' is a table's: a processor can read it but not change it. Write to the table's "
                "topic, or keep a store of your own."
            )
        if self._journal is None:
            return
        if self._store.timestamped and value is not None:
            self._journal.note(key, *value)
        else:
            self._journal.note(key, value)


class ProcessorKeyValueStore(StateStore):
    """A table of keys and values, in the order of the keys' bytes.

    Mirrors `org.apache.kafka.streams.state.KeyValueStore`, and `TimestampedKeyValueStore`, whose values are
    `ValueAndTimestamp`.

    >>> class RunningTotal(Processor):
    ...     def process(self, record):
    ...         totals = self.context.state_store("totals")
    ...         totals.put(record.key, (totals.get(record.key) or 0) + 1)
    """

    def __init__(
        self, task: OperatorContext, store: Store, journal: ChangelogBuffer | None, read_only: bool = False
    ) -> None:
        super().__init__(store, journal, read_only)
        self._table = task.table(f"store {store.name}")

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None if there is none."""
        data = self._key(key)
        return self._read_value(self._table.look_at(data).get(data))

    def put(self, key: Any, value: Any) -> None:
        """Set the value of `key`; None deletes it."""
        self.put_bytes(self._key(key), self._write_value(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of `key` if it has none; return the one it had, or None."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set the values of many keys, given as pairs."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Delete `key` and return the value it had, or None."""
        found = self.get(key)
        self.put(key, None)
        return found

    def range(self, first: Any, last: Any) -> Iterator[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included; None leaves an end open."""
        return self._rows(lambda: self._between(first, last))

    def reverse_range(self, first: Any, last: Any) -> Iterator[KeyValue]:
        """Return the rows of `range`, the last key first."""
        return self._rows(lambda: reversed(self._between(first, last)))

    def all(self) -> Iterator[KeyValue]:
        """Return every row."""
        return self.range(None, None)

    def reverse_all(self) -> Iterator[KeyValue]:
        """Return every row, the last key first."""
        return self.reverse_range(None, None)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[KeyValue]:
        """Return the rows whose keys' bytes begin with those of `prefix`.

        Args:
            prefix: what they begin with.
            serde: of the prefix; the keys' own when not given.
        """
        start = (serde or self._store.key).serialize(prefix) or b""
        return self._rows(lambda: [row for row in self._table.items() if row[0].startswith(start)])

    def approximate_num_entries(self) -> int:
        """Return how many rows there are."""
        return sum(1 for _ in self._table.items())

    def put_bytes(self, key: bytes, value: Any) -> None:
        """Set a row as it is stored; None deletes it."""
        self._note(key, value)
        self.apply(key, value)

    def apply(self, key: bytes, value: Any) -> None:
        """Set a row without a word to the changelog."""
        rows = self._table.change(key)
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value

    def _between(self, first: Any, last: Any) -> list[tuple[bytes, Any]]:
        low = None if first is None else self._key(first)
        high = None if last is None else self._key(last)
        return [row for row in self._table.items()
                if (low is None or row[0] >= low) and (high is None or row[0] <= high)]  # fmt: skip

    def _rows(self, found: Callable[[], Iterable[tuple[bytes, Any]]]) -> Iterator[KeyValue]:
        return (KeyValue(self._decode_key(key), self._read_value(value)) for key, value in found())


class LeastRecentlyUsed(ProcessorKeyValueStore):
    """A table of a few keys, which forgets the one that was read or written longest ago.

    Mirrors `org.apache.kafka.streams.state.internals.MemoryLRUCache`.
    """

    def __init__(self, task: OperatorContext, store: Store, journal: ChangelogBuffer | None) -> None:
        StateStore.__init__(self, store, journal)
        self._pages, self._page, self._most = task.pages, f"store {store.name}", store.max_entries or 1
        self._saved = self._pages.load(self._page)
        # Its order is what matters, so that all of it is one page.
        self._kept: OrderedDict[bytes, Any] = OrderedDict() if self._saved is None else pickle.loads(self._saved)
        task.keep(self)

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None if there is none; the key counts as used."""
        data = self._key(key)
        if data in self._kept:
            self._kept.move_to_end(data)
        return self._read_value(self._kept.get(data))

    def apply(self, key: bytes, value: Any) -> None:
        """Set a row, and forget the key that was used least recently if there are too many."""
        self._kept.pop(key, None)
        if value is not None:
            self._kept[key] = value
        while len(self._kept) > self._most:
            forgotten, _ = self._kept.popitem(last=False)
            self._note(forgotten, None)

    def approximate_num_entries(self) -> int:
        """Return how many rows there are."""
        return len(self._kept)

    def save(self) -> None:
        """Save the rows with their order, if it has changed."""
        data = pickle.dumps(self._kept, protocol=5)
        if data != self._saved:
            self._pages.save(self._page, data)

    def _between(self, first: Any, last: Any) -> list[tuple[bytes, Any]]:
        low = None if first is None else self._key(first)
        high = None if last is None else self._key(last)
        return [row for row in sorted(self._kept.items())
                if (low is None or row[0] >= low) and (high is None or row[0] <= high)]  # fmt: skip

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[KeyValue]:
        """Return the rows whose keys' bytes begin with those of `prefix`."""
        start = (serde or self._store.key).serialize(prefix) or b""
        return self._rows(lambda: [row for row in sorted(self._kept.items()) if row[0].startswith(start)])


class ProcessorWindowStore(StateStore):
    """A table of keys, windows and values; a window is known by its start in milliseconds.

    Mirrors `org.apache.kafka.streams.state.WindowStore`, and `TimestampedWindowStore`.
    """

    def __init__(self, task: OperatorContext, store: Store, journal: ChangelogBuffer | None) -> None:
        super().__init__(store, journal)
        if store.retention is None or not isinstance(store.windows, TimeWindows):
            raise StreamsError(f"Store '{self.name}' has no windows: make it with Stores.persistent_window_store().")
        self._windows = Windows(task, f"store {store.name}", store.retention)
        self._size = store.windows.size

    def put(self, key: Any, value: Any, start: int) -> None:
        """Set the value of a key's window that begins at `start`; None deletes it."""
        inner, stored = self._key(key), self._write_value(value)
        self._note(inner + struct.pack(">qi", start, 0), stored)
        self._windows.put(inner, stored, start)

    def fetch(self, key: Any, time_from: int, time_to: int | None = None) -> Any:
        """Return the value of the window that begins at a time; with `time_to` pairs of start and value.

        Args:
            key: the key.
            time_from: in milliseconds.
            time_to: likewise; windows that begin between the two, both included, are returned in order.
        """
        if time_to is None:
            return self._read_value(self._windows.fetch(self._key(key), time_from))
        found = self._windows.fetch_range(self._key(key), time_from, time_to)
        return iter([(start, self._read_value(value)) for start, value in found])

    def backward_fetch(self, key: Any, time_from: int, time_to: int) -> Iterator[tuple[int, Any]]:
        """Return what `fetch` returns for two times, the latest window first."""
        return iter(list(self.fetch(key, time_from, time_to))[::-1])

    def fetch_all(self, time_from: int, time_to: int) -> Iterator[KeyValue]:
        """Return the windows of all keys that begin between two times, as rows with `Windowed` keys, by start."""
        found = self._windows.fetch_all(time_from, time_to)
        return (KeyValue(Windowed(self._decode_key(key), start, start + self._size), self._read_value(value))
                for key, start, value in found)  # fmt: skip

    def all(self) -> Iterator[KeyValue]:
        """Return every window that is kept."""
        return self.fetch_all(-1, FOREVER)


class ProcessorSessionStore(StateStore):
    """A table of keys, sessions and values. Mirrors `org.apache.kafka.streams.state.SessionStore`."""

    def __init__(self, task: OperatorContext, store: Store, journal: ChangelogBuffer | None) -> None:
        super().__init__(store, journal)
        if store.retention is None:
            raise StreamsError(f"Store '{self.name}' has no retention: make it with Stores.persistent_session_store().")
        self._sessions = Sessions(task, f"store {store.name}", store.retention)

    def put(self, session: Windowed, value: Any) -> None:
        """Set the value of a key's session; None deletes it."""
        inner, stored = self._key(session.key), self._write_value(value)
        self._note(inner + struct.pack(">qq", session.end, session.start), stored)
        self._sessions.put(inner, session.start, session.end, stored)

    def remove(self, session: Windowed) -> None:
        """Delete a key's session."""
        self.put(session, None)

    def fetch(self, key: Any) -> Iterator[KeyValue]:
        """Return all sessions of `key`, the one that ended first before the others."""
        return self.find_sessions(key, 0, FOREVER)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """Return the value of the session of `key` with this start and end, or None."""
        found = self._sessions.find_sessions(self._key(key), end, start)
        return next((self._read_value(value) for e, s, value in found if (s, e) == (start, end)), None)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[KeyValue]:
        """Return the sessions of `key` that end at a time or later and begin at another or earlier."""
        found = self._sessions.find_sessions(self._key(key), earliest_end, latest_start)
        return (KeyValue(Windowed(key, start, end), self._read_value(value)) for end, start, value in found)


def open_store(task: OperatorContext, store: Store, journal: ChangelogBuffer | None) -> StateStore:
    """Return a store of the right kind.

    Args:
        task: whose state it is part of.
        store: what it is.
        journal: takes its updates; None if nobody wants them.
    """
    if store.kind == "window":
        return ProcessorWindowStore(task, store, journal)
    if store.kind == "session":
        return ProcessorSessionStore(task, store, journal)
    if store.max_entries is not None:
        return LeastRecentlyUsed(task, store, journal)
    return ProcessorKeyValueStore(task, store, journal)


def _value_codec(store: Store) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return how a value is stored, and how it is read: as bytes, or as bytes with a time."""
    serialize, deserialize = store.value.serialize, store.value.deserialize
    if not store.timestamped:
        return serialize, deserialize

    def write(value: Any) -> tuple[bytes, int] | None:
        if value is None:
            return None
        if not isinstance(value, tuple) or len(value) != 2:
            raise StreamsError(
                f"Store '{store.name}' keeps a time beside each value: put ValueAndTimestamp(value, timestamp) into "
                f"it, not {value!r}."
            )
        data = serialize(value[0])
        return None if data is None else (data, value[1])

    def read(stored: tuple[bytes, int] | None) -> ValueAndTimestamp | None:
        return None if stored is None else ValueAndTimestamp(deserialize(stored[0]), stored[1])

    return write, read
