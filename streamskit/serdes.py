"""Serdes: how keys and values become the bytes of a Kafka record, and back.

Each serde says it twice: for one Python value (`serialize`, `deserialize`) and for a whole Spark Column
(`to_bytes`, `from_bytes`). The two give the same bytes, and the bytes are those of Kafka's Java serdes.
"""

import json
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.windows import Windowed


class Serde(ABC):
    """Turns values into bytes and back. For a format of your own write `data_type`, `serialize`, `deserialize`.

    Mirrors `org.apache.kafka.common.serialization.Serde`.
    """

    @property
    def data_type(self) -> T.DataType:
        """The Spark type of a decoded value."""
        raise NotImplementedError(f"{type(self).__name__} has no data_type: say which Spark type its values have.")

    @abstractmethod
    def serialize(self, value: Any) -> bytes | None:
        """Return the bytes of one value; None (a tombstone) stays None."""

    @abstractmethod
    def deserialize(self, data: bytes | None) -> Any:
        """Return the value in `data`; raises ValueError when the bytes are not of this format."""

    def to_bytes(self, value: Column) -> Column:
        """Return a Column with the bytes of the Column `value`."""
        return F.udf(lambda row: self.serialize(_plain(row)), T.BinaryType())(value)

    def from_bytes(self, data: Column) -> Column:
        """Return a Column with the values in the bytes of the Column `data`."""
        return F.udf(lambda row: self.deserialize(None if row is None else bytes(row)), self.data_type)(data)


@dataclass(frozen=True)
class StringSerde(Serde):
    """Text as UTF-8."""

    def __str__(self) -> str:
        return "Serdes.string()"

    @property
    def data_type(self) -> T.DataType:
        return T.StringType()

    def serialize(self, value: str | None) -> bytes | None:
        return None if value is None else value.encode()

    def deserialize(self, data: bytes | None) -> str | None:
        # Java's StringDeserializer puts U+FFFD where the bytes are not UTF-8.
        return None if data is None else data.decode(errors="replace")

    def to_bytes(self, value: Column) -> Column:
        return value.cast("binary")

    def from_bytes(self, data: Column) -> Column:
        return F.make_valid_utf8(data.cast("string"))


@dataclass(frozen=True)
class NumberSerde(Serde):
    """A number in big-endian bytes, as Java's ByteBuffer writes it."""

    name: str
    number_type: T.DataType
    format: str

    def __str__(self) -> str:
        return f"Serdes.{self.name}()"

    @property
    def data_type(self) -> T.DataType:
        return self.number_type

    @property
    def width(self) -> int:
        return struct.calcsize(self.format)

    def serialize(self, value: float | None) -> bytes | None:
        if value is None:
            return None
        try:
            return struct.pack(self.format, value)
        except struct.error as wrong:
            raise ValueError(f"{value!r} is not a {self.name}: {wrong}.") from None

    def deserialize(self, data: bytes | None) -> float | None:
        if data is None:
            return None
        if len(data) != self.width:
            raise ValueError(f"A {self.name} is {self.width} bytes long; this is {len(data)} bytes: {data[:20]!r}.")
        return struct.unpack(self.format, data)[0]

    def to_bytes(self, value: Column) -> Column:
        if isinstance(self.data_type, T.DoubleType):
            whole = _double_bits(value)
        else:
            # A cast that changes nothing would take the blame in Spark's message when `value` fails.
            whole = value if self.width == 8 else value.cast("bigint")
        digits = F.lpad(F.hex(whole), 16, "0")
        return F.unhex(digits if self.width == 8 else F.right(digits, F.lit(2 * self.width)))

    def from_bytes(self, data: Column) -> Column:
        wrong = F.raise_error(
            F.concat(F.lit(f"A {self.name} is {self.width} bytes long; this is "), F.hex(data), F.lit(" (hex)."))
        )
        # conv reads 16 digits as a signed number of 64 bits; shorter numbers get their sign from the cast through bits.
        bits = F.conv(F.hex(data), 16, -10).cast("bigint")
        if isinstance(self.data_type, T.DoubleType):
            number = _double_from_bits(bits)
        elif self.width == 8:
            number = bits
        else:
            half = 1 << (8 * self.width - 1)
            number = (F.pmod(bits + F.lit(half), F.lit(2 * half)) - F.lit(half)).cast(self.data_type)
        return F.when(data.isNull() | (F.octet_length(data) == self.width), number).otherwise(
            wrong.cast(self.data_type)
        )


@dataclass(frozen=True)
class BytesSerde(Serde):
    """Bytes as they are."""

    def __str__(self) -> str:
        return "Serdes.byte_array()"

    @property
    def data_type(self) -> T.DataType:
        return T.BinaryType()

    def serialize(self, value: bytes | None) -> bytes | None:
        return None if value is None else bytes(value)

    def deserialize(self, data: bytes | None) -> bytes | None:
        return None if data is None else bytes(data)

    def to_bytes(self, value: Column) -> Column:
        return value

    def from_bytes(self, data: Column) -> Column:
        return data


@dataclass(frozen=True)
class JsonSerde(Serde):
    """JSON text of a Spark schema; in Python a dict (or a list, where the schema is an array)."""

    schema: str

    def __str__(self) -> str:
        return f"Serdes.json({self.schema!r})"

    @property
    def data_type(self) -> T.DataType:
        return T.DataType.fromDDL(self.schema)

    def serialize(self, value: Any) -> bytes | None:
        return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else json.loads(data)

    def to_bytes(self, value: Column) -> Column:
        if isinstance(self.data_type, T.StructType | T.ArrayType | T.MapType):
            return F.to_json(value, {"ignoreNullFields": "false"}).cast("binary")
        # to_json wants something with members: write a list of one and take its brackets off.
        text = F.to_json(F.array(value), {"ignoreNullFields": "false"})
        return F.when(value.isNotNull(), text.substr(F.lit(2), F.length(text) - 2)).cast("binary")

    def from_bytes(self, data: Column) -> Column:
        if isinstance(self.data_type, T.StructType | T.ArrayType | T.MapType):
            return F.from_json(data.cast("string"), self.data_type, {"mode": "FAILFAST"})  # type: ignore[arg-type]
        text = F.concat(F.lit("["), data.cast("string"), F.lit("]"))
        return F.from_json(text, T.ArrayType(self.data_type), {"mode": "FAILFAST"})[0]


@dataclass(frozen=True)
class TimeWindowedSerde(Serde):
    """A key with its window: the key's bytes, then the window's start as 8 bytes; the end follows from the size.

    Mirrors `org.apache.kafka.streams.kstream.TimeWindowedSerializer` and its deserializer.
    """

    inner: Serde
    window_size: int

    def __str__(self) -> str:
        return f"Serdes.time_windowed({self.inner}, {self.window_size})"

    @property
    def data_type(self) -> T.DataType:
        return windowed_type(self.inner.data_type)

    def serialize(self, value: Windowed | None) -> bytes | None:
        if value is None:
            return None
        return (self.inner.serialize(value.key) or b"") + struct.pack(">q", value.start)

    def deserialize(self, data: bytes | None) -> Windowed | None:
        if data is None:
            return None
        if len(data) < 8:
            raise ValueError(f"A windowed key ends in 8 bytes of time; this is {len(data)} bytes: {data!r}.")
        start = struct.unpack(">q", data[-8:])[0]
        return Windowed(self.inner.deserialize(data[:-8]), start, start + self.window_size)

    def to_bytes(self, value: Column) -> Column:
        return F.concat(self.inner.to_bytes(value["key"]), LONG.to_bytes(value["start"]))

    def from_bytes(self, data: Column) -> Column:
        key = self.inner.from_bytes(F.substring(data, F.lit(1), F.octet_length(data) - 8))
        start = LONG.from_bytes(F.substring(data, F.octet_length(data) - 7, F.lit(8)))
        return F.struct(key.alias("key"), start.alias("start"), (start + self.window_size).alias("end"))


@dataclass(frozen=True)
class SessionWindowedSerde(Serde):
    """A key with its session: the key's bytes, then the session's end and start as 8 bytes each.

    Mirrors `org.apache.kafka.streams.kstream.SessionWindowedSerializer` and its deserializer.
    """

    inner: Serde

    def __str__(self) -> str:
        return f"Serdes.session_windowed({self.inner})"

    @property
    def data_type(self) -> T.DataType:
        return windowed_type(self.inner.data_type)

    def serialize(self, value: Windowed | None) -> bytes | None:
        if value is None:
            return None
        return (self.inner.serialize(value.key) or b"") + struct.pack(">qq", value.end, value.start)

    def deserialize(self, data: bytes | None) -> Windowed | None:
        if data is None:
            return None
        if len(data) < 16:
            raise ValueError(f"A session's key ends in 16 bytes of time; this is {len(data)} bytes: {data!r}.")
        end, start = struct.unpack(">qq", data[-16:])
        return Windowed(self.inner.deserialize(data[:-16]), start, end)

    def to_bytes(self, value: Column) -> Column:
        return F.concat(self.inner.to_bytes(value["key"]), LONG.to_bytes(value["end"]), LONG.to_bytes(value["start"]))

    def from_bytes(self, data: Column) -> Column:
        length = F.octet_length(data)
        key = self.inner.from_bytes(F.substring(data, F.lit(1), length - 16))
        end = LONG.from_bytes(F.substring(data, length - 15, F.lit(8)))
        start = LONG.from_bytes(F.substring(data, length - 7, F.lit(8)))
        return F.struct(key.alias("key"), start.alias("start"), end.alias("end"))


LONG = NumberSerde("long", T.LongType(), ">q")


class Serdes:
    """The serdes there are. Mirrors `org.apache.kafka.common.serialization.Serdes`.

    >>> Serdes.long().serialize(258)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x02'
    """

    @staticmethod
    def string() -> Serde:
        """Text as UTF-8."""
        return StringSerde()

    @staticmethod
    def long() -> Serde:
        """A whole number of 64 bits (Spark's bigint), 8 bytes."""
        return LONG

    @staticmethod
    def integer() -> Serde:
        """A whole number of 32 bits (Spark's int), 4 bytes."""
        return NumberSerde("integer", T.IntegerType(), ">i")

    @staticmethod
    def short() -> Serde:
        """A whole number of 16 bits (Spark's smallint), 2 bytes."""
        return NumberSerde("short", T.ShortType(), ">h")

    @staticmethod
    def double() -> Serde:
        """A floating-point number of 64 bits, 8 bytes."""
        return NumberSerde("double", T.DoubleType(), ">d")

    @staticmethod
    def byte_array() -> Serde:
        """Bytes as they are."""
        return BytesSerde()

    @staticmethod
    def json(schema: str) -> Serde:
        """JSON text with the fields of a Spark schema, like `Serdes.json("symbol string, price double")`."""
        return JsonSerde(schema)

    @staticmethod
    def time_windowed(inner: Serde, window_size: int) -> Serde:
        """A windowed key: the inner key's bytes and the window's start; `window_size` in milliseconds."""
        return TimeWindowedSerde(inner, window_size)

    @staticmethod
    def session_windowed(inner: Serde) -> Serde:
        """A key and its session: the inner key's bytes, the session's end and its start."""
        return SessionWindowedSerde(inner)

    @staticmethod
    def for_type(data_type: T.DataType) -> Serde:
        """Return the serde for a Spark type when none is named: numbers and text as Kafka has them, the rest JSON."""
        simple: dict[type[T.DataType], Serde] = {
            T.StringType: StringSerde(),
            T.LongType: LONG,
            T.IntegerType: Serdes.integer(),
            T.ShortType: Serdes.short(),
            T.DoubleType: Serdes.double(),
            T.BinaryType: BytesSerde(),
        }
        return simple.get(type(data_type)) or JsonSerde(data_type.simpleString())


def windowed_type(key: T.DataType) -> T.StructType:
    """Return the Spark type of a windowed key: key, start and end (milliseconds)."""
    return T.StructType(
        [T.StructField("key", key), T.StructField("start", T.LongType()), T.StructField("end", T.LongType())]
    )


def _double_bits(value: Column) -> Column:
    # Java's own function, called by name: no SQL function gives the bits of a double.
    bits = F.reflect(F.lit("java.lang.Double"), F.lit("doubleToLongBits"), value).cast("bigint")
    return F.when(value.isNotNull(), bits)


def _double_from_bits(bits: Column) -> Column:
    number = F.reflect(F.lit("java.lang.Double"), F.lit("longBitsToDouble"), bits).cast("double")
    return F.when(bits.isNotNull(), number)


def _plain(row: Any) -> Any:
    return row.asDict(recursive=True) if isinstance(row, T.Row) else row
