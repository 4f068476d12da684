"""Stores that are somewhere else, with the methods of the local ones."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamskit.api.windows import Windowed
from streamskit.queries.client.calls import Calls, RowMissingError
from streamskit.queries.rest.json_codec import from_json, to_base64, to_text
from streamskit.queries.rest.protocol import path
from streamskit.serdes import Serde
from streamskit.state.read_only import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
    Time,
    VersionedRecord,
    milliseconds,
)
from streamskit.state.stores import KeyValue, ValueAndTimestamp

PAGE = 1000
"""How many rows are asked for at a time."""


class Selection(NamedTuple):
    """The path of a list of rows, and its query."""

    parts: tuple[str, ...]
    query: Mapping[str, object]


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
        """The roles in which they answered: "active", "standby" or "global"."""
        return tuple(dict.fromkeys(each["role"] for each in self.partitions))

    @property
    def lag(self) -> int:
        """How many updates the one furthest behind had not read yet."""
        return max((each["lag"] for each in self.partitions), default=0)

    def __str__(self) -> str:
        behind = f", {self.lag} updates behind" if self.lag else ""
        return f"{', '.join(self.hosts)} ({', '.join(self.roles)}{behind})"


class RemoteStore(ReadOnlyStore[Selection]):
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}' at {self._calls.urls[0]}>"

    def approximate_num_entries(self) -> int:
        return int(self._ask(path("state", "keyvalues", self.name, "count"))["count"])

    def each(self, reverse: bool = False) -> Iterator[KeyValue]:
        """Yield every row; one page of them is in memory at a time."""
        return map(self._pair, self._rows(self.everything(reverse)))

    def peek(self, rows: int, predicate: Callable[[Any], bool] | None = None) -> list[KeyValue]:
        """Return a few rows to look at: the first by key, or the newest windows.

        Args:
            rows: how many at most.
            predicate: says of a key (without its window) whether its rows may be among them. It runs in this process,
                which has to read all rows for it: `search` is quicker.
        """
        if predicate is None:
            return self.search("", rows)
        found = [
            pair for pair in self.each() if predicate(pair.key.key if isinstance(pair.key, Windowed) else pair.key)
        ]
        if found and isinstance(found[0].key, Windowed):
            found.sort(key=lambda pair: pair.key.end, reverse=True)
        return found[:rows]

    def search(self, text: str, rows: int = 15) -> list[KeyValue]:
        """Return a few rows whose keys begin with a text, or equal it if it is in double quotes.

        Args:
            text: the text; all keys begin with an empty one.
            rows: how many at most.
        """
        said = self._ask(path("state", "peek", self.name, rows=min(rows, 10 * PAGE), search=text or None))
        return [self._pair(row) for row in said["rows"]]

    def everything(self, reverse: bool = False) -> Selection:
        return self._select("keyvalues", "all", reverse=reverse)

    def _select(self, kind: str, *parts: str, **query: object) -> Selection:
        return Selection(("state", kind, self.name, *parts), query)

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

    def _rows(self, selection: Selection) -> Iterator[dict[str, Any]]:
        after = None
        while True:
            said = self._ask(path(*selection.parts, limit=PAGE, after=after, **selection.query))
            yield from said["rows"]
            after = said["next"]
            if after is None:
                return

    def _pairs(self, selection: Selection) -> list[KeyValue]:
        return list(map(self._pair, self._rows(selection)))

    def _value_of(self, *parts: str, **query: object) -> Any:
        """Return the value of the row at a path, or None if there is none."""
        row = self._ask(path("state", *parts, **query))
        return None if row is None else self._value(row)

    def _pair(self, row: Mapping[str, Any]) -> KeyValue:
        return KeyValue(read_key(self._described, row), self._value(row))

    def _value(self, row: Mapping[str, Any]) -> Any:
        value = from_json(self._described["value"], row["value"])
        return ValueAndTimestamp(value, row["timestamp"]) if self._timestamped else value

    def _text(self, key: Any) -> str:
        return to_text(self._described["key"], self._named(key))

    def _bounds(self, key_from: Any, key_to: Any) -> tuple[str | None, str | None]:
        """Return two keys as text; None leaves a side open."""
        low, high = (None if key is None else self._text(key) for key in (key_from, key_to))
        return low, high


class RemoteKeyValueStore(RemoteStore, ReadOnlyKeyValueStore[Selection]):
    """A table of keys and values, somewhere else."""

    def get(self, key: Any) -> Any:
        return self._value_of("keyvalue", self.name, self._text(key))

    def between(self, first: Any = None, last: Any = None, reverse: bool = False) -> Selection:
        low, high = self._bounds(first, last)
        return self._select("keyvalues", "range", **{"from": low, "to": high}, reverse=reverse)

    def with_prefix(self, prefix: Any, serde: Serde | None = None, reverse: bool = False) -> Selection:
        text = self._text(prefix) if serde is None else to_base64(serde.serialize(prefix) or b"")
        return self._select("keyvalues", "prefix", text, as_bytes=serde is not None, reverse=reverse)


class RemoteVersionedStore(RemoteKeyValueStore, ReadOnlyVersionedStore[Selection]):
    """A table of keys, times and values, somewhere else; lists have the latest version of each row."""

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        at = None if as_of is None else milliseconds(as_of)
        row = self._ask(path("state", "keyvalue", self.name, self._text(key), as_of=at))
        if row is None:
            return None
        return self._version(row)

    def versions_between(
        self, key: Any, time_from: Time | None = None, time_to: Time | None = None, reverse: bool = False
    ) -> Selection:
        first, last = self._between(time_from, time_to)
        return self._select("versions", self._text(key), **{"from": first, "to": last}, reverse=reverse)

    def _versions(self, selection: Selection) -> list[VersionedRecord]:
        return list(map(self._version, self._rows(selection)))

    def _version(self, row: Mapping[str, Any]) -> VersionedRecord:
        value = from_json(self._described["value"], row["value"])
        return VersionedRecord(value, row["timestamp"], row.get("valid_to"))


class RemoteWindowStore(RemoteStore, ReadOnlyWindowStore[Selection]):
    """A table of keys, windows and values, somewhere else."""

    def everything(self, reverse: bool = False) -> Selection:
        return self._select("windows", reverse=reverse)

    def windows(self, key: Any, time_from: Time, time_to: Time, reverse: bool = False) -> Selection:
        return self._select("windowed", self._text(key), *_times(time_from, time_to), reverse=reverse)

    def windows_between(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time, reverse: bool = False
    ) -> Selection:
        low, high = self._bounds(key_from, key_to)
        return self._select("windows", *_times(time_from, time_to), key_from=low, key_to=high, reverse=reverse)

    def _value_at(self, key: Any, start: Time) -> Any:
        return self._value_of("windowed", self.name, self._text(key), str(milliseconds(start)))


class RemoteSessionStore(RemoteStore, ReadOnlySessionStore[Selection]):
    """A table of keys, sessions and values, somewhere else."""

    def everything(self, reverse: bool = False) -> Selection:
        return self._select("sessions", reverse=reverse)

    def fetch_session(self, key: Any, start: Time, end: Time) -> Any:
        times = {"start": milliseconds(start), "end": milliseconds(end)}
        found = self._pairs(self._select("sessions", self._text(key), **times))
        return found[0].value if found else None

    def sessions(self, key: Any, reverse: bool = False) -> Selection:
        return self._select("sessions", self._text(key), reverse=reverse)

    def sessions_between(self, key_from: Any, key_to: Any, reverse: bool = False) -> Selection:
        low, high = self._bounds(key_from, key_to)
        return self._select("sessions", key_from=low, key_to=high, reverse=reverse)


def read_key(described: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    """Return the key of a row, with its window if it has one, given what the application says of the store."""
    key, window = from_json(described["key"], row["key"]), row.get("window")
    return key if window is None else Windowed(key, window["start"], window["end"])


def _times(first: Time, last: Time) -> tuple[str, str]:
    return str(milliseconds(first)), str(milliseconds(last))
