"""Wrong answers to lab 05: numbers and schemas, and serdes that differ from the right one in one place."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T

from streamskit.course.labs.exercises.serialization_judging import FIRST
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serde, Serdes

Answer = Callable[[StreamsBuilder], None]


def stock(serde: Serde | None) -> Answer:
    """Return the answer that reads and writes with this serde."""
    return lambda builder: builder.stream("stock", value=serde).to("stock-levels")


# ---- a schema that grows ---------------------------------------------------------------------------------------------

VENUE = {"name": "venue", "type": "string", "default": "unknown"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def schema(*new: dict[str, Any], without: str = "") -> dict[str, Any]:
    """Return the first schema with new fields, and without an old one."""
    return {**FIRST, "fields": [*(field for field in FIRST["fields"] if field["name"] != without), *new]}


# ---- prices ----------------------------------------------------------------------------------------------------------


class Price(Serde):
    """Writes and reads as Java does."""

    data_type = T.IntegerType()
    end, signed, width, nulls = "big", True, 4, True

    def serialize(self, value: Any) -> Any:
        return None if value is None and self.nulls else value.to_bytes(self.width, self.end, signed=self.signed)

    def deserialize(self, data: Any) -> Any:
        if data is None and self.nulls:
            return None
        self.refuse(data)
        return int.from_bytes(data, self.end, signed=self.signed)  # type: ignore[arg-type]

    def refuse(self, data: bytes) -> None:
        """Raise an error at bytes that are no price."""
        if len(data) != 4:
            raise ValueError(f"a price has 4 bytes, not {len(data)}")


class WithoutType(Serde):
    def serialize(self, value: Any) -> Any:
        return value

    def deserialize(self, data: Any) -> Any:
        return data


class NoNulls(Price):
    nulls = False


class Unsigned(Price):
    signed = False


class FromTheEnd(Price):
    end = "little"


class Wide(Price):
    width = 8


class Digits(Price):
    def serialize(self, value: Any) -> Any:
        return None if value is None else str(value).encode()


class ReadFromTheEnd(Price):
    def deserialize(self, data: Any) -> Any:
        return None if data is None else int.from_bytes(data, "little", signed=True)


class UnsignedRead(Price):
    def deserialize(self, data: Any) -> Any:
        return None if data is None else int.from_bytes(data, "big")


class EmptyIsNull(Price):
    def deserialize(self, data: Any) -> Any:
        return super().deserialize(data) if data else None


class Trusting(Price):
    def refuse(self, data: bytes) -> None:
        """Refuse nothing."""


class OtherError(Price):
    def refuse(self, data: bytes) -> None:
        assert len(data) == 4


# ---- lines of a till -------------------------------------------------------------------------------------------------


class TillLine(Serde):
    """Reads a line of three parts."""

    data_type = T.StructType().add("symbol", T.StringType()).add("price", T.DoubleType()).add("size", T.IntegerType())

    def serialize(self, value: Any) -> Any:
        return None if value is None else "{symbol}|{price}|{size}".format(**value).encode()

    def deserialize(self, data: Any) -> Any:
        return None if data is None else self.read(data.decode().split("|"))

    def read(self, parts: list[str]) -> Any:
        """Return the ticket of a line's parts."""
        symbol, price, size = parts
        return {"symbol": symbol, "price": float(price), "size": int(size)}


class NullForError(TillLine):
    def deserialize(self, data: Any) -> Any:
        try:
            return super().deserialize(data)
        except ValueError:
            return None


class FirstThree(TillLine):
    def read(self, parts: list[str]) -> Any:
        return super().read(parts[:3])


class Rounded(TillLine):
    def read(self, parts: list[str]) -> Any:
        symbol, price, size = parts
        return super().read([symbol, price, str(int(float(size)))])


def tickets(serde: Serde) -> Answer:
    """Return the answer that reads lines with this serde."""
    ticket = Serdes.json("symbol string, price double, size int")
    return lambda builder: builder.stream("till-lines", value=serde).to("tickets", value=ticket)
