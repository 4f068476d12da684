"""State stores of the operators: tables of a task under the names of Kafka Streams' stores.

Keys are bytes, values are bytes or what an operator puts. Processors get the stores of `processor_stores`, which
hold plain Python values and are built on these. Window and session stores are in `bytes_timed_stores`.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from streamskit.operators import plain_data
from streamskit.operators.paged_state import PagedTable
from streamskit.operators.stream_task import OperatorContext

Version = tuple[int, bytes | None]
"""The time from which on a row had a value; None is a row that was deleted."""

Versions = list[Version]
"""The versions of a row, in order of their times."""


class BytesKeyValueStore:
    """Key-value store of bytes. Mirrors `org.apache.kafka.streams.state.KeyValueStore`.

    >>> store.put(b"KO", b"75.2")
    >>> store.get(b"KO")
    b'75.2'
    """

    def __init__(self, table: PagedTable) -> None:
        self._table = table

    def get(self, key: bytes) -> Any:
        """Return the value of `key`, or None if there is none."""
        return self._table.page(key).get(key)

    def put(self, key: bytes, value: Any) -> None:
        """Set the value of `key`; None deletes it."""
        put_row(self._table.changed_page(key), key, value)

    def put_if_absent(self, key: bytes, value: Any) -> Any:
        """Set the value of `key` if it has none; return the one it had."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: bytes) -> Any:
        """Delete `key` and return the value it had."""
        return self._table.changed_page(key).pop(key, None)

    def all(self) -> Iterator[tuple[bytes, Any]]:
        """Return every row in the order of the keys' bytes."""
        return self._table.items()

    def range(self, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, Any]]:
        """Return the rows with keys from `first` to `last`, both included; None leaves an end open."""
        return (row for row in self.all() if (first is None or row[0] >= first) and (last is None or row[0] <= last))


class BytesLruStore(BytesKeyValueStore):
    """Key-value store of a few keys, which evicts the one that was read or written longest ago.

    Mirrors `org.apache.kafka.streams.state.internals.MemoryLRUCache`.

    Args:
        context: of the operator whose state it is part of.
        name: the store's name.
        max_entries: how many keys it holds.
        evicted: called with each key that is evicted.
    """

    def __init__(self, context: OperatorContext, name: str, max_entries: int, evicted: Callable[[bytes], None]) -> None:
        self._pages, self._name, self._max_entries, self._evicted = context.task.pages, name, max_entries, evicted
        self._saved = self._pages.load(name)
        # The order of its rows matters, so they all share one page.
        self._rows: OrderedDict[bytes, Any] = OrderedDict() if self._saved is None else plain_data.loads(self._saved)
        context.task.saved.append(self)

    def get(self, key: bytes) -> Any:
        """Return the value of `key`, or None if there is none; the key counts as used."""
        if key in self._rows:
            self._rows.move_to_end(key)
        return self._rows.get(key)

    def put(self, key: bytes, value: Any) -> None:
        """Set the value of `key`; None deletes it. With too many keys, the least recently used one is evicted."""
        self._rows.pop(key, None)
        if value is not None:
            self._rows[key] = value
        while len(self._rows) > self._max_entries:
            least_recent, _ = self._rows.popitem(last=False)
            self._evicted(least_recent)

    def delete(self, key: bytes) -> Any:
        """Delete `key` and return the value it had."""
        return self._rows.pop(key, None)

    def all(self) -> Iterator[tuple[bytes, Any]]:
        """Return every row in the order of the keys' bytes."""
        return iter(sorted(self._rows.items()))

    def save(self) -> None:
        """Save the rows with their order, if it has changed."""
        data = plain_data.dumps(self._rows)
        if data != self._saved:
            self._pages.save(self._name, data)
            self._saved = data


def put_row(rows: dict[Any, Any], key: Any, value: Any) -> None:
    """Set the value of a key; None deletes it."""
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value


class PutResult(NamedTuple):
    """What a versioned store did with a version: whether it was kept, and whether it is the latest of its row.

    `valid_to` is the time of the version after it, if there is one.
    """

    is_kept: bool
    is_latest: bool
    valid_to: int | None = None


class BytesVersionedStore:
    """Versioned store of bytes, which can be queried for a row as of a time.

    Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`.

    Args:
        context: of the operator whose state it is part of.
        name: the store's name.
        history: how far back versions are kept, in milliseconds, from the latest time the store has seen.
    """

    def __init__(self, context: OperatorContext, name: str, history: int) -> None:
        self._table, self._history = context.table(name, self._expire), history
        self._memory = context.task.memory.of(name)
        self._memory.setdefault("latest", -1)

    def get(self, key: bytes, as_of: int | None = None) -> bytes | None:
        """Return the value of `key`, now or as of a time in milliseconds, or None if there is none."""
        found = self.version(key, as_of)
        return None if found is None else found[1]

    def version(self, key: bytes, as_of: int | None = None) -> Version | None:
        """Return the version of `key`, now or as of a time in milliseconds, or None if there is none."""
        versions: Versions | None = self._table.page(key).get(key)
        if not versions:
            return None
        if as_of is None:
            return versions[-1]
        if as_of < self._memory["latest"] - self._history and as_of < versions[-1][0]:
            return None
        index = bisect_right(versions, as_of, key=_time)
        return versions[index - 1] if index else None

    def is_too_old(self, timestamp: int) -> bool:
        """Return whether a version from this time on would not be kept."""
        too_old: bool = timestamp < self._memory["latest"] - self._history
        return too_old

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> PutResult:
        """Set the value of `key` from a time on; None deletes it. A version older than the history is not kept."""
        memory = self._memory
        if self.is_too_old(timestamp):
            return PutResult(False, False)
        memory["latest"] = max(memory["latest"], timestamp)
        versions: Versions = self._table.changed_page(key).setdefault(key, [])
        index = bisect_right(versions, timestamp, key=_time)
        if index and versions[index - 1][0] == timestamp:
            was, versions[index - 1] = versions[index - 1][1], (timestamp, value)
            begins = index == 1 or versions[index - 2][1] is None
            if value is None and was is not None and index == len(versions) and begins:
                # Kafka Streams keeps the time of such a deletion only where it ends a version before it.
                versions.pop()
                return PutResult(True, True)
        else:
            versions.insert(index, (timestamp, value))
            index += 1
        valid_to = versions[index][0] if index < len(versions) else None
        self._expire(versions)
        return PutResult(True, valid_to is None, valid_to)

    def _expire(self, versions: Versions) -> None:
        """Delete the versions that ended before the history begins."""
        begin = self._memory["latest"] - self._history
        del versions[: max(bisect_right(versions, begin, key=_time) - 1, 0)]
        if versions and versions[0][1] is None and versions[0][0] <= begin:
            del versions[0]


def _time(version: Version) -> int:
    return version[0]
