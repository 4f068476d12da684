"""`Serde`: what every serde can do. For a format of one's own this is the class to start from."""

from abc import ABC, abstractmethod
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.serdes import batches
from streamskit.serdes.errors import SerdeError

LONGEST_SHOWN = 60
"""How many characters of a value or of its bytes an error shows."""


class Serde(ABC):
    """Turns values into bytes and back. For a format of your own write `data_type`, `serialize`, `deserialize`.

    In Spark those two functions run in Python, on Arrow batches of records. A null never reaches them there: a null
    value has no bytes (a tombstone), and no bytes are a null value.

    Mirrors `org.apache.kafka.common.serialization.Serde`.

    >>> class Celsius(Serde):
    ...     data_type = DoubleType()
    ...     def serialize(self, value): return None if value is None else f"{value} C".encode()
    ...     def deserialize(self, data): return None if data is None else float(data.removesuffix(b" C"))
    """

    def __str__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def data_type(self) -> T.DataType:
        """The Spark type of a decoded value."""
        raise NotImplementedError(f"{type(self).__name__} has no data_type: say which Spark type its values have.")

    @property
    def runs_in_python(self) -> bool:
        """Whether Spark hands its records to Python, rather than run it with functions of its own."""
        return True

    @abstractmethod
    def serialize(self, value: Any) -> bytes | None:
        """Return the bytes of one value; None (a tombstone) stays None. Raises ValueError if it cannot be written."""

    @abstractmethod
    def deserialize(self, data: bytes | None) -> Any:
        """Return the value in `data`; raises ValueError when the bytes are not of this format."""

    def deserialize_row(self, data: bytes | None) -> Any:
        """Return the value in `data` as Spark has it; another one where `deserialize` makes objects of a class."""
        return self.deserialize(data)

    def to_bytes(self, value: Column) -> Column:
        """Return a Column with the bytes of the Column `value`; a value that cannot be written fails the query."""
        return batches.write(self, value)

    def from_bytes(self, data: Column) -> Column:
        """Return a Column with the values in the bytes of the Column `data`; what cannot be read fails the query."""
        return batches.read(self, data)

    def try_to_bytes(self, value: Column) -> Column:
        """Return a Column of structs: `value`, the bytes, and `error`, a sentence where the value cannot be written."""
        return batches.try_write(self, value)

    def try_from_bytes(self, data: Column) -> Column:
        """Return a Column of structs: `value`, what was read, and `error`, a sentence where `data` cannot be read."""
        return batches.try_read(self, data)

    def cannot_read(self, data: bytes, why: object) -> SerdeError:
        """Return the error to raise for bytes that are not of this format: the serde, the bytes in hex, and why."""
        return SerdeError(f"{self} cannot read {show_bytes(data)}: {_sentence(why)}")

    def cannot_write(self, value: object, why: object) -> SerdeError:
        """Return the error to raise for a value that has no bytes in this format: the serde, the value, and why."""
        return SerdeError(f"{self} cannot write {_short(repr(value))}: {_sentence(why)}")

    def refusal(self, data: Column, why: str) -> Column:
        """Return the sentence of `cannot_read` as a Column."""
        return F.concat(F.lit(f"{self} cannot read "), shown_bytes(data), F.lit(f": {why}."))


class ColumnSerde(Serde):
    """A serde that Spark runs with functions of its own, so that no record goes to Python and back.

    A subclass says how the bytes are read (`read`) and, as a sentence, what is wrong with bytes that are not of its
    format (`unreadable`, null where nothing is). Likewise `write` and `unwritable`.
    """

    @property
    def runs_in_python(self) -> bool:
        return False

    @abstractmethod
    def read(self, data: Column) -> Column:
        """Return the values in `data`; asked only for bytes with which nothing is wrong."""

    @abstractmethod
    def write(self, value: Column) -> Column:
        """Return the bytes of `value`; asked only for values with which nothing is wrong."""

    def unreadable(self, data: Column) -> Column | None:
        """Return why bytes cannot be read, null where they can; None if any bytes can."""
        return None

    def unwritable(self, value: Column) -> Column | None:
        """Return why a value cannot be written, null where it can; None if every value can."""
        return None

    def to_bytes(self, value: Column) -> Column:
        return _checked(self.write(value), self.unwritable(value))

    def from_bytes(self, data: Column) -> Column:
        return _checked(self.read(data), self.unreadable(data), self.data_type)

    def try_to_bytes(self, value: Column) -> Column:
        return _tried(self.write(value), self.unwritable(value))

    def try_from_bytes(self, data: Column) -> Column:
        return _tried(self.read(data), self.unreadable(data))


def show_bytes(data: bytes) -> str:
    """Return bytes as an error shows them: how many, and the first in hex."""
    if not data:
        return "no bytes"
    counted = "1 byte" if len(data) == 1 else f"{len(data)} bytes"
    return f"{counted} ({_short(data.hex(' '))})"


def shown_bytes(data: Column) -> Column:
    """Return `show_bytes` as a Column."""
    digits = F.lower(F.hex(F.substring(data, 1, LONGEST_SHOWN)))
    spaced = F.rtrim(F.regexp_replace(digits, "(..)", "$1 "))
    short = F.when(F.length(spaced) > LONGEST_SHOWN, F.concat(F.left(spaced, F.lit(LONGEST_SHOWN)), F.lit("…")))
    count = F.octet_length(data)
    return F.when(count == 0, "no bytes").otherwise(
        F.concat(count, F.when(count == 1, " byte (").otherwise(" bytes ("), F.coalesce(short, spaced), F.lit(")"))
    )


def _checked(made: Column, wrong: Column | None, data_type: T.DataType | None = None) -> Column:
    if wrong is None:
        return made
    return F.when(wrong.isNull(), made).otherwise(F.raise_error(wrong).cast(data_type or T.BinaryType()))


def _tried(made: Column, wrong: Column | None) -> Column:
    if wrong is None:
        return F.struct(made.alias("value"), F.lit(None).cast("string").alias("error"))
    return F.struct(F.when(wrong.isNull(), made).alias("value"), wrong.alias("error"))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _sentence(why: object) -> str:
    text = " ".join(str(why).split()) or type(why).__name__
    return text if text.endswith(".") else f"{text}."
