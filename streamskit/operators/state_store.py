"""What all stores of a processor have in common: how it accesses one, and how updates reach the changelog."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.api.processor import LATEST_TIME
from streamskit.common.durations import whole_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.state.stores import Store, ValueAndTimestamp

EARLIEST = -(2**63)
"""The smallest number that fits into the eight bytes of a time."""

WriteChangelog = Callable[[bytes, bytes | None, int], None]
"""Writes a record to a changelog: key, value, timestamp."""


class ChangelogBuffer:
    """Changelog of a store: passes on each update, or with caching the last of each key when the micro-batch ends.

    Mirrors `org.apache.kafka.streams.state.internals.ChangeLoggingKeyValueBytesStore`, with caching behind a
    `CachingKeyValueStore`.

    Args:
        write: writes a record to the changelog topic.
        caching: whether only the last update of each key is written.
        now: returns the time of the record in hand, in milliseconds.
    """

    def __init__(self, write: WriteChangelog, caching: bool, now: Callable[[], int]) -> None:
        self._write, self._caching, self._now = write, caching, now
        self._latest: dict[bytes, tuple[bytes | None, int]] = {}

    def log(self, key: bytes, value: bytes | None, timestamp: int | None = None) -> None:
        """Log an update; its time is that of the record in hand unless another is given."""
        time = self._now() if timestamp is None else timestamp
        if self._caching:
            self._latest[key] = value, time
        else:
            self._write(key, value, time)

    def save(self) -> None:
        """Write what is cached."""
        for key, (value, time) in self._latest.items():
            self._write(key, value, time)
        self._latest.clear()


@dataclass(frozen=True)
class StoreAccess:
    """How a processor accesses a store: where its rows are, and what receives its updates.

    Args:
        table: the name of the table of the task that holds the rows, which may be that of another operator.
        changelog: takes the updates; None if nothing needs them.
        refusal: why processors cannot change the store; empty where they can.
    """

    table: str
    changelog: ChangelogBuffer | None = None
    refusal: str = ""


class StateStore:
    """What all stores of a processor have in common: a name, the serdes of keys and values, and the changelog.

    Mirrors `org.apache.kafka.streams.processor.StateStore`.

    Args:
        store: its name, serdes and options.
        access: how to get at it.
    """

    name: str

    def __init__(self, store: Store, access: StoreAccess) -> None:
        self.name = store.name
        self._store, self._changelog, self._refusal = store, access.changelog, access.refusal
        self._write_value, self._read_value = _value_codec(store, self._time_of_row)

    def _key(self, key: Any) -> bytes:
        if key is None:
            raise StreamsError(f"Store '{self.name}': a row cannot have the key None. Filter such records out first.")
        return self._store.key.serialize(key) or b""

    def _time(self, argument: str, time: Any) -> int:
        """Return a time, by the name of the argument that it is given as."""
        return _milliseconds(self.name, argument, time, EARLIEST)

    def _time_of_row(self, time: Any) -> int:
        """Return the time of a row, which is that of its record in the changelog if there is one."""
        return _milliseconds(self.name, "the time of a row", time, 0 if self._store.logged else EARLIEST)

    def _key_range(self, first: Any, last: Any) -> Callable[[bytes], bool]:
        """Return a predicate for whether the bytes of a key are between two keys; None leaves that side open."""
        least, most = (None if key is None else self._key(key) for key in (first, last))
        return lambda key: (least is None or least <= key) and (most is None or key <= most)

    def _log(self, key: bytes, value: Any, timestamp: int | None = None) -> None:
        """Log an update before it is made, so that a refused one changes nothing."""
        if self._refusal:
            raise StreamsError(f"Store '{self.name}': {self._refusal}")
        if self._changelog is None:
            return
        if self._store.timestamped and value is not None:
            self._changelog.log(key, *value)
        else:
            self._changelog.log(key, value, timestamp)


def _milliseconds(store: str, argument: str, time: Any, earliest: int) -> int:
    """Return a time as an int, also one of NumPy's."""
    number: int | None = time if type(time) is int else whole_milliseconds(time)
    if number is None or not earliest <= number <= LATEST_TIME:
        raise StreamsError(
            f"Store '{store}': {argument} is {time!r}, and has to be a whole number of milliseconds since 1970, as "
            "record.timestamp is."
        )
    return number


def _value_codec(store: Store, time_of_row: Callable[[Any], int]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
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
        return None if data is None else (data, time_of_row(value[1]))

    def read(stored: tuple[bytes, int] | None) -> ValueAndTimestamp | None:
        return None if stored is None else ValueAndTimestamp(deserialize(stored[0]), stored[1])

    return write, read
