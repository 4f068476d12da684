"""What instances answer: rows as JSON text, merged in the order of their bytes, a page at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamskit.api.windows import Windowed
from streamskit.queries.rest.json_codec import dumps, from_base64, to_base64, to_json
from streamskit.serdes import Serde
from streamskit.state.local import LocalStore
from streamskit.state.rows import PARTITION, Span, StoreEntry, time_bytes
from streamskit.state.stores import ValueAndTimestamp

CHUNK = 500
"""How many rows are read at a time."""

LARGEST_PAGE = 8_000_000
"""About how many characters a page has at most, however many rows were asked for."""


class ResultRow(NamedTuple):
    """A row of an answer: its bytes and its partition, by which rows are ordered, and its JSON text."""

    row: bytes
    partition: int
    text: str

    @property
    def cursor(self) -> str:
        """Its place in a list, as text."""
        return to_base64(PARTITION.pack(self.partition) + self.row)


class ResultPage(NamedTuple):
    """Rows in order, whether there are more after them, and how many were left out as they cannot be read."""

    rows: list[ResultRow]
    more: bool = False
    unreadable: int = 0


ReadRows = Callable[[LocalStore, Sequence[int]], ResultPage]
"""Reads what is asked for from some partitions of a store."""


@dataclass(frozen=True)
class QueryResult:
    """What was found: a page, the partitions that answered, and why the missing ones did not.

    For each partition that answered it says which instance did (`host`), in which role (`role`), and how many updates
    of the changelog that instance had not read yet (`lag`).
    """

    page: ResultPage
    partitions: list[dict[str, Any]] = field(default_factory=list)
    missing: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def none(cls, partitions: Iterable[int], why: str) -> "QueryResult":
        """Return a result without rows, for partitions that did not answer."""
        return cls(ResultPage([]), [], dict.fromkeys(partitions, why))

    def to_peer(self) -> str:
        """Return the answer as instances send it to each other."""
        rows = [[row.cursor, row.text] for row in self.page.rows]
        missing = {str(partition): why for partition, why in self.missing.items()}
        said = {"rows": rows, "more": self.page.more, "unreadable": self.page.unreadable}
        return dumps({**said, "partitions": self.partitions, "missing": missing})

    @classmethod
    def from_peer(cls, sent: Any) -> "QueryResult":
        """Return the answer that another instance sent. Raises ValueError, KeyError or TypeError if it is none."""
        rows = []
        for cursor, text in sent["rows"]:
            place = from_base64(cursor)
            rows.append(ResultRow(place[4:], int.from_bytes(place[:4], "big"), text))
        missing = {int(partition): why for partition, why in sent["missing"].items()}
        page = ResultPage(rows, bool(rows and sent["more"]), int(sent.get("unreadable", 0)))
        return cls(page, list(sent["partitions"]), missing)


def row_of(entry: StoreEntry) -> ResultRow:
    """Return a row that was found in a local store."""
    said = {**described(entry.key, entry.value), "timestamp": entry.timestamp, "partition": entry.partition}
    if entry.valid_to is not None:
        said["valid_to"] = entry.valid_to
    return ResultRow(entry.row, entry.partition, dumps(said))


def described(key: Any, value: Any) -> dict[str, Any]:
    """Return a key, with its window if it has one, and a value, as JSON has them."""
    if isinstance(value, ValueAndTimestamp):
        value = value.value
    if isinstance(key, Windowed):
        window = {"start": key.start, "end": key.end}
        return {"key": to_json(key.key), "window": window, "value": to_json(value)}
    return {"key": to_json(key), "value": to_json(value)}


def read_one(find: Callable[[Any], StoreEntry | None]) -> ReadRows:
    """Return a function that reads one row of each partition: the one that `find` finds in a store."""

    def read(store: LocalStore, partitions: Sequence[int]) -> ResultPage:
        views = [store] if len(partitions) == 1 else [store.only([partition]) for partition in sorted(partitions)]
        return ResultPage([row_of(entry) for entry in map(find, views) if entry is not None])

    return read


def read_span(make: Callable[[Any], Span], limit: int, after: bytes | None) -> ReadRows:
    """Return what reads a page of a span, which `make` makes of a store."""

    def read(store: LocalStore, partitions: Sequence[int]) -> ResultPage:
        span, rows, last, size, unreadable = make(store), list[ResultRow](), after, 0, 0
        while True:
            chunk = min(CHUNK, limit + 1 - len(rows))
            entries = store.entries(span, chunk, last)
            unreadable += store.unreadable
            found = [row_of(entry) for entry in entries]
            rows += found
            size += sum(len(row.text) for row in found)
            if len(found) < chunk:
                return ResultPage(rows, unreadable=unreadable)
            if len(rows) > limit or size > LARGEST_PAGE:
                return ResultPage(rows[:limit], True, unreadable)
            last = entries[-1].cursor

    return read


def read_first(rows: int, predicate: Callable[[Any], bool] | None, serde: Serde, beginning: str = "") -> ReadRows:
    """Return what reads a few rows to look at: the newest windows and sessions, or the first keys.

    Args:
        rows: how many.
        predicate: says of a key whether its rows may be among them.
        serde: that of the keys, in the order of whose bytes they come.
        beginning: what all keys that the predicate accepts begin with.
    """

    def read(store: LocalStore, partitions: Sequence[int]) -> ResultPage:
        found, unreadable = list[ResultRow](), 0
        for partition in partitions:
            part = store.only([partition])
            for key, value in part.peek(rows, predicate, beginning):
                said = dumps({**described(key, value), "partition": partition})
                found.append(ResultRow(_place_to_look(store, key, serde), partition, said))
            unreadable += part.unreadable
        return ResultPage(sorted(found)[:rows], unreadable=unreadable)

    return read


def read_count(store: LocalStore, partitions: Sequence[int]) -> ResultPage:
    """Read how many rows each partition has."""
    counts = [(partition, store.only([partition]).approximate_num_entries()) for partition in partitions]
    return ResultPage([ResultRow(b"", partition, str(count)) for partition, count in counts])


def merged(pages: Iterable[ResultPage], limit: int, reverse: bool) -> ResultPage:
    """Return one page of several, in order.

    Where a page has more after it, rows beyond its last may not be shown yet: some of its own come before them.
    """
    pages = list(pages)
    rows = sorted((row for page in pages for row in page.rows), key=_place, reverse=reverse)
    ends = [_place(page.rows[-1]) for page in pages if page.more]
    if ends and reverse:
        rows = [row for row in rows if _place(row) >= max(ends)]
    elif ends:
        rows = [row for row in rows if _place(row) <= min(ends)]
    return ResultPage(rows[:limit], bool(ends) or len(rows) > limit, sum(page.unreadable for page in pages))


def _place(row: ResultRow) -> tuple[bytes, int]:
    return row.row, row.partition


def _place_to_look(store: LocalStore, key: Any, serde: Serde) -> bytes:
    """Return bytes that order the newest windows first, and windows of the same time by key."""
    if not isinstance(key, Windowed):
        return serde.serialize(key) or b""
    newest = time_bytes(-(key.end if store.kind == "session" else key.start))
    return newest + (serde.serialize(key.key) or b"")
