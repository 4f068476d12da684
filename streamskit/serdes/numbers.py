"""Numbers in big-endian bytes, as Java's ByteBuffer writes them."""

import struct
from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.serdes.serde import ColumnSerde

JAVA_CLASSES = {"float": ("java.lang.Float", "floatToIntBits", "intBitsToFloat"),
                "double": ("java.lang.Double", "doubleToLongBits", "longBitsToDouble")}  # fmt: skip
"""The class in Java that knows the bits of a number, and its functions there and back."""


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
    def width(self) -> int:
        """How many bytes a number has."""
        return struct.calcsize(self.format)

    def serialize(self, value: float | None) -> bytes | None:
        if value is None:
            return None
        try:
            # All that is not a number is the same one in Java.
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
        if self.name in JAVA_CLASSES:
            bits = self._java(value, to_bits=True)
        else:
            # A cast that changes nothing would take the blame in Spark's message when `value` fails.
            bits = value if self.width == 8 else value.cast("bigint")
        digits = F.lpad(F.hex(bits), 16, "0")
        return F.unhex(digits if self.width == 8 else F.right(digits, F.lit(2 * self.width)))

    def read(self, data: Column) -> Column:
        # conv reads 16 digits as a signed number of 64 bits; shorter ones get their sign by counting from the middle.
        bits = F.conv(F.hex(data), 16, -10).cast("bigint")
        if self.width < 8:
            half = 1 << (8 * self.width - 1)
            bits = F.pmod(bits + F.lit(half), F.lit(2 * half)) - F.lit(half)
        if self.name in JAVA_CLASSES:
            return self._java(bits, to_bits=False)
        return bits if self.width == 8 else bits.cast(self.data_type)

    def unreadable(self, data: Column) -> Column:
        return F.when(F.octet_length(data) != self.width, self.refusal(data, self._rule))

    @property
    def _rule(self) -> str:
        return f"a {self.name} is {self.width} bytes long"

    def _java(self, number: Column, to_bits: bool) -> Column:
        # Java's own functions, called by name: no SQL function gives the bits of a floating-point number.
        name, there, back = JAVA_CLASSES[self.name]
        if to_bits:
            made = F.reflect(F.lit(name), F.lit(there), number).cast("bigint")
        else:
            whole = number if self.width == 8 else number.cast("int")
            made = F.reflect(F.lit(name), F.lit(back), whole).cast(self.data_type)
        return F.when(number.isNotNull(), made)


LONG = NumberSerde("long", T.LongType(), ">q")
INTEGER = NumberSerde("integer", T.IntegerType(), ">i")
SHORT = NumberSerde("short", T.ShortType(), ">h")
FLOAT = NumberSerde("float", T.FloatType(), ">f")
DOUBLE = NumberSerde("double", T.DoubleType(), ">d")
