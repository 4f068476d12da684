"""Lists: the bytes of the entries one after another, in either of the two forms that Kafka's ListSerializer has."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from streamskit.serdes.numbers import NumberSerde
from streamskit.serdes.serde import Serde
from streamskit.serdes.simple import UuidSerde

FIXED, VARIABLE = 0, 1
"""The first byte: entries of one width, or each with its length before it."""

NULL_ENTRY = -1
"""The length that stands for a null, where lengths are written."""


@dataclass(frozen=True)
class ListSerde(Serde):
    """A list of what `inner` writes. Mirrors `org.apache.kafka.common.serialization.Serdes.ListSerde`.

    With an inner serde of a fixed width (numbers, UUIDs), the format is the byte 0, the number and positions of the
    nulls, the number of entries, and the entries that are not null. With any other, it is the byte 1, the number of
    entries, and for each its length (-1 for a null) and its bytes. Numbers and lengths are integers of 4 bytes.
    """

    inner: Serde

    def __str__(self) -> str:
        return f"Serdes.list({self.inner})"

    @property
    def data_type(self) -> T.DataType:
        return T.ArrayType(self.inner.data_type)

    @property
    def is_canonical(self) -> bool:
        return self.inner.is_canonical

    @property
    def width(self) -> int | None:
        """How many bytes each entry has; None if they differ."""
        if isinstance(self.inner, NumberSerde):
            return self.inner.width
        return 36 if isinstance(self.inner, UuidSerde) else None

    def serialize(self, value: Sequence[Any] | None) -> bytes | None:
        if value is None:
            return None
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise self.cannot_write(value, f"it is of type {type(value).__name__}, not a list")
        written = [None if entry is None else self.inner.serialize(entry) for entry in value]
        if self.width is not None:
            nulls = [number for number, entry in enumerate(written) if entry is None]
            head = struct.pack(f">bi{len(nulls)}ii", FIXED, len(nulls), *nulls, len(written))
            return head + b"".join(entry for entry in written if entry is not None)
        parts = [struct.pack(">bi", VARIABLE, len(written))]
        for entry in written:
            parts += [struct.pack(">i", NULL_ENTRY)] if entry is None else [struct.pack(">i", len(entry)), entry]
        return b"".join(parts)

    def deserialize(self, data: bytes | None) -> list[Any] | None:
        return self._read(data, self.inner.deserialize)

    def deserialize_row(self, data: bytes | None) -> list[Any] | None:
        return self._read(data, self.inner.deserialize_row)

    def _read(self, data: bytes | None, read_entry: Callable[[bytes], Any]) -> list[Any] | None:
        if data is None:
            return None
        rest = _Reader(data)
        try:
            entries = self._entries(rest)
        except EOFError:
            raise self.cannot_read(data, "the bytes end before the list does") from None
        if rest.left:
            raise self.cannot_read(data, f"{rest.left} more bytes follow the last entry")
        return [None if entry is None else read_entry(entry) for entry in entries]

    def _entries(self, rest: "_Reader") -> list[bytes | None]:
        form = rest.take(1)[0]
        if form != (VARIABLE if self.width is None else FIXED):
            raise self.cannot_read(rest.data, f"its first byte is {form:02x}, so another inner serde has written it")
        nulls = frozenset() if self.width is None else frozenset(rest.integer() for _ in range(rest.integer()))
        entries: list[bytes | None] = []
        for number in range(rest.integer()):
            entries.append(None if number in nulls else self._entry(rest))
        return entries

    def _entry(self, rest: "_Reader") -> bytes | None:
        length = rest.integer() if self.width is None else self.width
        return None if length == NULL_ENTRY else rest.take(length)


class _Reader:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self._at

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise EOFError
        self._at += count
        return self.data[self._at - count : self._at]

    def integer(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)
