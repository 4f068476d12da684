"""Stores that are somewhere else, with the methods of the local ones."""

import time
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from streamskit.api.windows import Windowed
from streamskit.queries.client.calls import Calls, RowMissingError
from streamskit.queries.rest.json_codec import from_json, to_base64, to_text
from streamskit.queries.rest.protocol import path
from streamskit.serdes import Serde
from streamskit.state.stores import KeyValue, ValueAndTimestamp
from streamskit.state.timed import Time, VersionedRecord, milliseconds

PAGE = 1000
"""How many rows are asked for at a time."""


class StoreUpdate(NamedTuple):
    """One update of a store: `value` is None where the row was deleted; `offset` is its place in the changelog."""

    key: Any
    value: Any
    timestamp: int
    partition: int
    offset: int


@dataclass(frozen=True)
class AnsweredBy:
    """Who gave an answer: for each partition the instance, its role, and by how many updates it was behind."""

    partitions: tuple[Mapping[str, Any], ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The instances."""
        return tuple(dict.fromkeys(each["host"] for each in self.partitions))

    @property
    def roles(self) -> tuple[str, ...]:
        """As what they have answered: "active", "standby" or "global"."""
        return tuple(dict.fromkeys(each["role"] for each in self.partitions))

    @property
    def lag(self) -> int:
        """How many updates the one furthest behind had not read yet."""
        return max((each["lag"] for each in self.partitions), default=0)

    def __str__(self) -> str:
        behind = f", {self.lag} updates behind" if self.lag else ""
        return f"{', '.join(self.hosts)} ({', '.join(self.roles)}{behind})"


class RemoteStore:
    """What all remote stores share.

    `answered_by` says who gave the last answer, None before the first, and `took` how long it took, in seconds.

    Args:
        calls: how to ask.
        described: what the application says of the store.
    """

    def __init__(self, calls: Calls, described: Mapping[str, Any]) -> None:
        self.name: str = described["name"]
        self.kind: str = described["kind"]
        self.answered_by: AnsweredBy | None = None
        self.took = 0.0
        self._calls, self._described = calls, described
        self._timestamped = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}' at {self._calls.urls[0]}>"

    def with_timestamps(self) -> Self:
        """Return the same store with values that come with the time they were set: `ValueAndTimestamp`."""
        store = copy(self)
        store._timestamped = True
        return store

    def approximate_num_entries(self) -> int:
        """Return the number of rows. Mirrors `ReadOnlyKeyValueStore#approximateNumEntries`."""
        return int(self._ask(path("state", "keyvalues", self.name, "count"))["count"])

    def all(self) -> list[KeyValue]:
        """Return every row. Mirrors the stores' `all()`."""
        return list(self.each())

    def each(self, reverse: bool = False) -> Iterator[KeyValue]:
        """Yield every row; one page of them is in memory at a time."""
        return self._pairs(self._everything(), reverse=reverse)

    def peek(self, rows: int, wanted: Callable[[Any], bool] | None = None) -> list[KeyValue]:
        """Return a few rows to look at: the first by key, or the newest windows.

        Args:
            rows: how many at most.
            wanted: says of a key (without its window) whether its rows may be among them. Such a function stays here,
                so that all rows are read to apply it: `search` is quicker.
        """
        if wanted is None:
            return self.search("", rows)
        found = [pair for pair in self.each() if wanted(pair.key.key if isinstance(pair.key, Windowed) else pair.key)]
        if found and isinstance(found[0].key, Windowed):
            found.sort(key=lambda pair: pair.key.end, reverse=True)
        return found[:rows]

    def search(self, text: str, rows: int = 15) -> list[KeyValue]:
        """Return a few rows with keys that begin with a text, or, if it stands in double quotes, are it.

        Args:
            text: the text; all keys begin with an empty one.
            rows: how many at most.
        """
        said = self._ask(path("state", "peek", self.name, rows=min(rows, 10 * PAGE), search=text or None))
        return [self._pair(row) for row in said["rows"]]

    def _everything(self) -> tuple[str, ...]:
        return ("state", "keyvalues", self.name, "all")

    def _ask(self, asked: str) -> Any:
        began = time.perf_counter()
        try:
            said = self._calls.ask(asked)
            self.answered_by = AnsweredBy(tuple(said.get("partitions", [said])))
            return said
        except RowMissingError as missing:
            self.answered_by = AnsweredBy(tuple(missing.partitions))
            return None
        finally:
            self.took = time.perf_counter() - began

    def _rows(self, parts: tuple[str, ...], **query: object) -> Iterator[dict[str, Any]]:
        after = None
        while True:
            said = self._ask(path(*parts, limit=PAGE, after=after, **query))
            yield from said["rows"]
            after = said["next"]
            if after is None:
                return

    def _pairs(self, parts: tuple[str, ...], **query: object) -> Iterator[KeyValue]:
        return map(self._pair, self._rows(parts, **query))

    def _pair(self, row: Mapping[str, Any]) -> KeyValue:
        return KeyValue(read_key(self._described, row), self._value(row))

    def _value(self, row: Mapping[str, Any]) -> Any:
        value = from_json(self._described["value"], row["value"])
        return ValueAndTimestamp(value, row["timestamp"]) if self._timestamped else value

    def _text(self, key: Any) -> str:
        if key is None:
            raise ValueError(f"Store '{self.name}' has no row with the key None: name a key.")
        return to_text(self._described["key"], key)

    def _open_text(self, key: Any) -> str | None:
        return None if key is None else self._text(key)


class RemoteKeyValueStore(RemoteStore):
    """A table of keys and values, somewhere else. Mirrors `org.apache.kafka.streams.state.ReadOnlyKeyValueStore`."""

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None if there is none."""
        row = self._ask(path("state", "keyvalue", self.name, self._text(key)))
        return None if row is None else self._value(row)

    def range(self, first: Any = None, last: Any = None) -> list[KeyValue]:
        """Return the rows with keys from `first` to `last`, both included; a bound that is None is open."""
        return list(self._between(first, last, False))

    def reverse_range(self, first: Any = None, last: Any = None) -> list[KeyValue]:
        """Return the rows of `range`, the last first."""
        return list(self._between(first, last, True))

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> list[KeyValue]:
        """Return the rows whose keys' bytes begin with those of `prefix`, written by the store's serde or another."""
        text = self._text(prefix) if serde is None else to_base64(serde.serialize(prefix) or b"")
        return list(self._pairs(("state", "keyvalues", self.name, "prefix", text), as_bytes=serde is not None))

    def reverse_all(self) -> list[KeyValue]:
        """Return every row, the last first."""
        return list(self.each(reverse=True))

    def _between(self, first: Any, last: Any, reverse: bool) -> Iterator[KeyValue]:
        bounds = {"from": self._open_text(first), "to": self._open_text(last)}
        return self._pairs(("state", "keyvalues", self.name, "range"), **bounds, reverse=reverse)


class RemoteVersionedStore(RemoteKeyValueStore):
    """A table of keys, times and values, somewhere else; lists have the latest version of each row.

    Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`.
    """

    def get(self, key: Any, as_of: Time | None = None) -> Any:
        """Return the version of `key` that was valid at a time, the latest one when not given, or None."""
        at = None if as_of is None else milliseconds(as_of)
        row = self._ask(path("state", "keyvalue", self.name, self._text(key), as_of=at))
        return (
            None
            if row is None
            else VersionedRecord(from_json(self._described["value"], row["value"]), row["timestamp"])
        )


def read_key(described: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    """Return the key of a row, with its window if it has one, given what the application says of the store."""
    key, window = from_json(described["key"], row["key"]), row.get("window")
    return key if window is None else Windowed(key, window["start"], window["end"])
