"""Rows as bytes that sort by key, then by time; the spans that queries select, and the search for keys."""

import struct
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

TIME = struct.Struct(">Q")
PARTITION = struct.Struct(">I")
STAMP = struct.Struct(">q")
SIGN = 1 << 63
SIGN_TURNED = [bytes([first ^ 0x80]) for first in range(256)]
END_OF_KEY = b"\0\0"


class StoreEntry(NamedTuple):
    """A row that was found: its bytes, its key (with its window), its value, when that was set, and its partition.

    Of a version in a list of versions, `valid_to` is when it was replaced; None if it was not.
    """

    row: bytes
    key: Any
    value: Any
    timestamp: int
    partition: int
    valid_to: int | None = None

    @property
    def cursor(self) -> bytes:
        """The place of the row in a list, from which the next page continues."""
        return PARTITION.pack(self.partition) + self.row


@dataclass(frozen=True)
class Span:
    """The rows from `begin` until before `end`, with times from `earliest` to `latest`; None leaves a side open.

    Of a versioned store, a span with an `earliest` time selects all versions of a key, one without it the latest.
    """

    begin: bytes | None = None
    end: bytes | None = None
    reverse: bool = False
    earliest: int | None = None
    latest: int | None = None

    def beyond(self, cursor: bytes, partition: int) -> "Span":
        """Return the rest of the span that a partition has after the row of a cursor."""
        (last,), row = PARTITION.unpack_from(cursor), cursor[4:]
        if self.reverse:
            end = row if partition >= last else row + b"\0"
            return replace(self, end=end if self.end is None else min(end, self.end))
        begin = row + b"\0" if partition <= last else row
        return replace(self, begin=begin if self.begin is None else max(begin, self.begin))


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the first bytes that sort after everything with a prefix; None if there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def keyed(key: bytes) -> bytes:
    """Return a key encoded so that its rows sort before those of any longer key that it begins, whatever follows."""
    return key.replace(b"\0", b"\0\xff") + END_OF_KEY


def unkeyed(row: bytes, times: int) -> bytes:
    """Return the key of a row that ends in a number of times."""
    return row[: -8 * times - len(END_OF_KEY)].replace(b"\0\xff", b"\0")


def time_bytes(time: int) -> bytes:
    """Return a time as eight bytes that sort as times do."""
    return TIME.pack(min(max(time + SIGN, 0), 2 * SIGN - 1))


def sorting_time(time: bytes) -> bytes:
    """Return the eight bytes of a signed time as `time_bytes` writes them.

    >>> sorting_time((-1).to_bytes(8, "big", signed=True)) == time_bytes(-1)
    True
    """
    return SIGN_TURNED[time[0]] + time[1:]


def time_at(row: bytes, place: int) -> int:
    """Return the time that begins at a place in a row."""
    return TIME.unpack_from(row, place)[0] - SIGN


def pack(value: bytes, timestamp: int) -> bytes:
    """Return a value with its time in front."""
    return STAMP.pack(timestamp) + value


def timestamp_of(packed: bytes) -> int:
    """Return the time of a packed value."""
    return STAMP.unpack_from(packed)[0]


def matches(key: str, search: str) -> bool:
    """Return whether a key begins with the searched text, or equals it if it is in double quotes.

    >>> matches("Köln", "Kö"), matches("Köln", '"Kö"'), matches("Kö", '"Kö"')
    (True, False, True)
    """
    return key == beginning(search) if _is_whole(search) else key.startswith(search)


def beginning(search: str) -> str:
    """Return the text that all matching keys begin with."""
    return search[1:-1] if _is_whole(search) else search


def _is_whole(search: str) -> bool:
    return len(search) > 1 and search[0] == search[-1] == '"'
