"""The simplest formats: text, bytes, booleans, UUIDs and nothing at all."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.serdes.serde import ColumnSerde

UUID_PATTERN = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


@dataclass(frozen=True)
class StringSerde(ColumnSerde):
    """Text as UTF-8. Mirrors `org.apache.kafka.common.serialization.Serdes.StringSerde`."""

    def __str__(self) -> str:
        return "Serdes.string()"

    @property
    def data_type(self) -> T.DataType:
        return T.StringType()

    @property
    def is_canonical(self) -> bool:
        return True

    def serialize(self, value: str | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.cannot_write(value, f"it is of type {type(value).__name__}, not text")
        # Java's StringSerializer puts a question mark where half of a surrogate pair stands alone.
        return value.encode(errors="replace")

    def deserialize(self, data: bytes | None) -> str | None:
        # Java's StringDeserializer puts U+FFFD where the bytes are not UTF-8.
        return None if data is None else data.decode(errors="replace")

    def write(self, value: Column) -> Column:
        return value.cast("binary")

    def read(self, data: Column) -> Column:
        return F.make_valid_utf8(data.cast("string"))


@dataclass(frozen=True)
class BytesSerde(ColumnSerde):
    """Bytes as they are; Java's `byte[]`, `Bytes` and `ByteBuffer` are all `bytes` here.

    Mirrors `Serdes.ByteArraySerde`, `Serdes.BytesSerde` and `Serdes.ByteBufferSerde`.
    """

    name: str = "byte_array"

    def __str__(self) -> str:
        return f"Serdes.{self.name}()"

    @property
    def data_type(self) -> T.DataType:
        return T.BinaryType()

    @property
    def is_canonical(self) -> bool:
        return True

    def serialize(self, value: bytes | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, bytes | bytearray | memoryview):
            raise self.cannot_write(value, f"it is of type {type(value).__name__}, not bytes")
        return bytes(value)

    def deserialize(self, data: bytes | None) -> bytes | None:
        return None if data is None else bytes(data)

    def write(self, value: Column) -> Column:
        return value

    def read(self, data: Column) -> Column:
        return data


@dataclass(frozen=True)
class BooleanSerde(ColumnSerde):
    """One byte: 1 is true, 0 is false. Mirrors `Serdes.BooleanSerde`."""

    def __str__(self) -> str:
        return "Serdes.boolean()"

    @property
    def data_type(self) -> T.DataType:
        return T.BooleanType()

    @property
    def is_canonical(self) -> bool:
        return True

    def serialize(self, value: bool | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, bool):
            raise self.cannot_write(value, "it is neither True nor False")
        return b"\x01" if value else b"\x00"

    def deserialize(self, data: bytes | None) -> bool | None:
        if data is None:
            return None
        if data not in (b"\x00", b"\x01"):
            raise self.cannot_read(data, "a boolean is one byte, 00 or 01")
        return data == b"\x01"

    def write(self, value: Column) -> Column:
        return F.when(value, F.lit(b"\x01")).when(~value, F.lit(b"\x00"))

    def read(self, data: Column) -> Column:
        return data == F.lit(b"\x01")

    def unreadable(self, data: Column) -> Column:
        known = data.isin(F.lit(b"\x00"), F.lit(b"\x01"))
        return F.when(~known, self.refusal(data, "a boolean is one byte, 00 or 01"))


@dataclass(frozen=True)
class UuidSerde(ColumnSerde):
    """A UUID as its 36 characters; a `uuid.UUID` in Python, text in Spark. Mirrors `Serdes.UUIDSerde`."""

    def __str__(self) -> str:
        return "Serdes.uuid()"

    @property
    def data_type(self) -> T.DataType:
        return T.StringType()

    def serialize(self, value: UUID | str | None) -> bytes | None:
        if value is None:
            return None
        if not re.fullmatch(UUID_PATTERN, str(value)):
            raise self.cannot_write(value, "a UUID is 32 hex digits in groups of 8-4-4-4-12")
        return str(value).lower().encode()

    def deserialize(self, data: bytes | None) -> UUID | None:
        if data is None:
            return None
        if not re.fullmatch(UUID_PATTERN.encode(), data):
            raise self.cannot_read(data, "a UUID is 36 characters, hex digits in groups of 8-4-4-4-12")
        return UUID(data.decode())

    def write(self, value: Column) -> Column:
        return F.lower(value).cast("binary")

    def read(self, data: Column) -> Column:
        return F.lower(data.cast("string"))

    def unreadable(self, data: Column) -> Column:
        why = "a UUID is 36 characters, hex digits in groups of 8-4-4-4-12"
        return F.when(~data.cast("string").rlike(_whole(UUID_PATTERN)), self.refusal(data, why))

    def unwritable(self, value: Column) -> Column:
        said = F.concat(
            F.lit(f"{self} cannot write '"), value, F.lit("': a UUID is 32 hex digits in groups of 8-4-4-4-12.")
        )
        return F.when(~value.rlike(_whole(UUID_PATTERN)), said)


@dataclass(frozen=True)
class VoidSerde(ColumnSerde):
    """Nothing: only null can be written and read. Mirrors `Serdes.VoidSerde`."""

    def __str__(self) -> str:
        return "Serdes.void()"

    @property
    def data_type(self) -> T.DataType:
        return T.NullType()

    @property
    def is_canonical(self) -> bool:
        return True

    def serialize(self, value: Any) -> bytes | None:
        if value is not None:
            raise self.cannot_write(value, "it writes nothing but None")
        return None

    def deserialize(self, data: bytes | None) -> None:
        if data is not None:
            raise self.cannot_read(data, "it reads nothing but null")

    def write(self, value: Column) -> Column:
        return F.lit(None).cast("binary")

    def read(self, data: Column) -> Column:
        return F.lit(None)

    def unreadable(self, data: Column) -> Column:
        return F.when(data.isNotNull(), self.refusal(data, "it reads nothing but null"))

    def unwritable(self, value: Column) -> Column:
        said = F.concat(F.lit(f"{self} cannot write '"), value.cast("string"), F.lit("': it writes nothing but null."))
        return F.when(value.isNotNull(), said)


def _whole(pattern: str) -> str:
    # In Java's patterns $ also matches before a final line break.
    return pattern.removesuffix("$") + r"\z"
