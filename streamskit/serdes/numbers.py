"""Numbers in big-endian bytes, as Java's ByteBuffer writes them."""

import struct
from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.jvm.functions import read_number
from streamskit.serdes.serde import ColumnSerde

JAVA_CLASSES = {"float": ("java.lang.Float", "floatToIntBits"), "double": ("java.lang.Double", "doubleToLongBits")}
"""The Java class that gives the bits of a number, and its function."""


@dataclass(frozen=True)
class NumberSerde(ColumnSerde):
    """A number of a fixed width. Mirrors `LongSerde`, `IntegerSerde`, `ShortSerde`, `DoubleSerde` and `FloatSerde`."""

    name: str
    number_type: T.DataType
    format: str

    def __str__(self) -> str:
        return f"Serdes.{self.name}()"

    @property
    def data_type(self) -> T.DataType:
        return self.number_type

    @property
    def is_canonical(self) -> bool:
        return True

    @property
    def width(self) -> int:
        """How many bytes a number has."""
        return struct.calcsize(self.format)

    def serialize(self, value: float | None) -> bytes | None:
        if value is None:
            return None
        try:
            # Java writes every NaN in the same way.
            return struct.pack(self.format, float("nan") if value != value else value)
        except (struct.error, OverflowError, TypeError) as wrong:
            raise self.cannot_write(value, f"it is not a {self.name}, {wrong}") from None

    def deserialize(self, data: bytes | None) -> float | None:
        if data is None:
            return None
        if len(data) != self.width:
            raise self.cannot_read(data, self._rule)
        return cast(float, struct.unpack(self.format, data)[0])

    def write(self, value: Column) -> Column:
        # Made of Spark's own functions: the error would name one of ours when `value` fails.
        if self.name in JAVA_CLASSES:
            # Java's own functions, called by name: no SQL function gives the bits of a floating-point number.
            name, function = JAVA_CLASSES[self.name]
            bits = F.when(value.isNotNull(), F.reflect(F.lit(name), F.lit(function), value).cast("bigint"))
        else:
            # The error would also name a cast that changes nothing.
            bits = value if self.width == 8 else value.cast("bigint")
        digits = F.lpad(F.hex(bits), 16, "0")
        return F.unhex(digits if self.width == 8 else F.substring(digits, 17 - 2 * self.width, 2 * self.width))

    def read(self, data: Column) -> Column:
        return read_number(data, self.data_type, str(self))

    def from_bytes(self, data: Column) -> Column:
        return self.read(data)  # which checks the length itself

    def unreadable(self, data: Column) -> Column:
        return F.when(F.octet_length(data) != self.width, self.refusal(data, self._rule))

    @property
    def _rule(self) -> str:
        return f"{'an' if self.name == 'integer' else 'a'} {self.name} is {self.width} bytes long"


LONG = NumberSerde("long", T.LongType(), ">q")
INTEGER = NumberSerde("integer", T.IntegerType(), ">i")
SHORT = NumberSerde("short", T.ShortType(), ">h")
FLOAT = NumberSerde("float", T.FloatType(), ">f")
DOUBLE = NumberSerde("double", T.DoubleType(), ">d")
