"""`Serde`: what every serde can do. Subclass it for a format of your own.

A serde that is written in Python gets Arrow batches of records from Spark, not one record at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.common.errors import StreamsKitError, TopologyError

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_SHOWN = 60
"""How many characters of a value or of its bytes an error shows."""


class SerdeError(ValueError):
    """Bytes that are not in a serde's format, or a value that it cannot write; the message names the serde."""


class RegistryError(StreamsKitError):
    """The schema registry cannot be reached, or refuses a schema. No record is at fault."""


class Serde(ABC):
    """Turns values into bytes and back. For a format of your own, define `data_type`, `serialize`, `deserialize`.

    In Spark those two functions run in Python, on Arrow batches of records. A null never reaches them there: a null
    value has no bytes (a tombstone), and no bytes are a null value.

    Mirrors `org.apache.kafka.common.serialization.Serde`.

    >>> class Celsius(Serde):
    ...     data_type = DoubleType()
    ...     def serialize(self, value): return None if value is None else f"{value} C".encode()
    ...     def deserialize(self, data): return None if data is None else float(data.removesuffix(b" C"))
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "serialize" in cls.__dict__ and not cls.__module__.startswith("streamskit."):
            cls.serialize = _giving_bytes(cls.serialize)  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def data_type(self) -> T.DataType:
        """The Spark type of a decoded value."""
        raise NotImplementedError(f"{type(self).__name__} has no data_type: say which Spark type its values have.")

    @property
    def runs_in_python(self) -> bool:
        """Whether Spark passes its records to Python instead of running it with Spark's own functions."""
        return True

    @property
    def is_canonical(self) -> bool:
        """Whether it reads equal values from equal bytes only; else keys are written anew before they are compared."""
        return False

    @abstractmethod
    def serialize(self, value: Any) -> bytes | None:
        """Return the bytes of one value; None (a tombstone) stays None.

        Raises:
            ValueError: the value cannot be written.
        """

    @abstractmethod
    def deserialize(self, data: bytes | None) -> Any:
        """Return the value in `data`; None (a tombstone) stays None.

        Raises:
            ValueError: the bytes are not of this format.
        """

    def deserialize_row(self, data: bytes | None) -> Any:
        """Return the value in `data` as Spark has it; it differs where `deserialize` makes objects of a class."""
        return self.deserialize(data)

    def to_bytes(self, value: Column) -> Column:
        """Return a Column with the bytes of the Column `value`; a value that cannot be written fails the query."""
        import pyarrow as pa

        def write_batch(batch: pa.Array) -> pa.Array:
            return pa.array([_given(self.serialize, each) for each in _rows(batch)], pa.binary())

        return _column(write_batch, T.BinaryType(), value)

    def from_bytes(self, data: Column) -> Column:
        """Return a Column with the values in the bytes of the Column `data`; what cannot be read fails the query."""
        import pyarrow as pa

        def read_batch(batch: pa.Array) -> pa.Array:
            return _values(self, [_given(self.deserialize_row, each) for each in batch.to_pylist()])

        return _column(read_batch, self.data_type, data)

    def try_to_bytes(self, value: Column) -> Column:
        """Return a Column of structs: `value`, the bytes, and `error`, a sentence where the value cannot be written."""
        import pyarrow as pa

        def try_write_batch(batch: pa.Array) -> pa.Array:
            written, errors = _attempts(self.serialize, self.cannot_write, _rows(batch))
            return _attempted(pa.array(written, pa.binary()), errors)

        return _column(try_write_batch, _attempt_type(T.BinaryType()), value)

    def try_from_bytes(self, data: Column) -> Column:
        """Return a Column of structs: `value`, what was read, and `error`, a sentence where `data` cannot be read."""
        import pyarrow as pa

        def try_read_batch(batch: pa.Array) -> pa.Array:
            values, errors = _attempts(self.deserialize_row, self.cannot_read, batch.to_pylist())
            try:
                read = _values(self, values)
            except ValueError:  # one of them is not of the serde's type: find out which
                values, errors = _sorted_out(self, values, errors)
                read = _values(self, values)
            return _attempted(read, errors)

        return _column(try_read_batch, _attempt_type(self.data_type), data)

    def cannot_read(self, data: bytes, why: object) -> SerdeError:
        """Return the error to raise for bytes that are not of this format: the serde, the bytes in hex, and why."""
        return SerdeError(f"{self} cannot read {show_bytes(data)}: {_sentence(why)}")

    def cannot_write(self, value: object, why: object) -> SerdeError:
        """Return the error to raise for a value that this format cannot write: the serde, the value, and why."""
        return SerdeError(f"{self} cannot write {_shown(value)}: {_sentence(why)}")

    def refusal(self, data: Column, why: str) -> Column:
        """Return the message of `cannot_read` as a Column."""
        return F.concat(F.lit(f"{self} cannot read "), shown_bytes(data), F.lit(f": {why}."))


class ColumnSerde(Serde):
    """A serde that Spark runs with its own functions, so that no record goes to Python and back.

    A subclass says how the bytes are read (`read`) and, as a sentence, what is wrong with bytes that are not in its
    format (`unreadable`, null where nothing is). Likewise `write` and `unwritable`.
    """

    @property
    def runs_in_python(self) -> bool:
        return False

    @abstractmethod
    def read(self, data: Column) -> Column:
        """Return the values in `data`; used only for bytes that are valid."""

    @abstractmethod
    def write(self, value: Column) -> Column:
        """Return the bytes of `value`; used only for values that are valid."""

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


def _giving_bytes(serialize: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bytes | None]:
    """Return a `serialize` of a user's own that refuses to return anything else than bytes.

    What stores and topics would say of it names no serde, and no step.
    """

    @wraps(serialize)
    def checked(self: Serde, value: Any) -> bytes | None:
        data = serialize(self, value)
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return data  # type: ignore[return-value]
        advice = " Text becomes bytes with .encode()." if isinstance(data, str) else ""
        raise self.cannot_write(value, f"its serialize() returned {_shown(data)}, and has to return bytes.{advice}")

    return checked


def require_serde(serde: Any, where: str) -> None:
    """Refuse what is not a serde, while the line that passes it can still be named.

    Args:
        serde: what a program passes as a serde.
        where: the step or store, and which of its serdes.

    Raises:
        TopologyError: it is not a serde, or its `data_type` is no type of Spark.
    """
    if isinstance(serde, Serde):
        declared = type(serde).data_type  # not the object's own: a schema's needs a Spark session
        if not (isinstance(declared, T.DataType) or hasattr(declared, "__get__")):
            raise TopologyError(
                f"{where}: the data_type of {serde} is {_short(repr(declared))}, and has to be a type of Spark, such "
                "as StringType() or DataType.fromDDL('name string, size int'), both of pyspark.sql.types."
            )
        return
    if isinstance(serde, type) and issubclass(serde, Serde):
        raise TopologyError(f"{where} is the class {serde.__name__}; give an object of it: {serde.__name__}().")
    name = getattr(serde, "__qualname__", "")
    if callable(serde) and name.startswith("Serdes."):
        given = "..." if signature(serde).parameters else ""
        raise TopologyError(f"{where} is the function {name} itself; call it: {name}({given}).")
    shown = _short(repr(serde))
    raise TopologyError(f"{where} must be a serde, such as Serdes.string() or Serdes.long(), not {shown}.")


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


def _shown(value: object) -> str:
    try:
        return _short(repr(value))
    except ValueError:  # Python refuses to write a number of thousands of digits
        return f"a number of thousands of digits, or what holds one (of type {type(value).__name__})"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _sentence(why: object) -> str:
    text = " ".join(str(why).split()) or type(why).__name__
    return text if text.endswith(".") else f"{text}."


# ---- serdes that run in Python, on Arrow batches ---------------------------------------------------------------------


def _attempt_type(data_type: T.DataType) -> T.StructType:
    """Return the Spark type of an attempt: the value, and the error where there is none."""
    return T.StructType([T.StructField("value", data_type), T.StructField("error", T.StringType())])


def _column(function: Callable[["pa.Array"], "pa.Array"], data_type: T.DataType, column: Column) -> Column:
    # Spark sees from the function's hints that it takes and returns whole batches.
    return F.arrow_udf(function, data_type)(column)  # type: ignore[call-overload]


def _given(function: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else function(value)


def _rows(batch: "pa.Array") -> list[Any]:
    values: list[Any] = batch.to_pylist(maps_as_pydicts="strict")
    return values


def _attempts(
    function: Callable[[Any], Any], refused: Callable[[Any, object], SerdeError], values: list[Any]
) -> tuple[list[Any], list[str | None]]:
    """Call a serde's function on each value, and return its results and, where it raises, the messages."""
    results: list[Any] = []
    errors: list[str | None] = []
    for value in values:
        result, error = None, None
        try:
            result = _given(function, value)
        except RegistryError:
            raise  # not the record's fault
        except SerdeError as failure:
            error = str(failure)
        except Exception as failure:
            error = str(refused(value, f"{type(failure).__name__}: {failure}"))
        results.append(result)
        errors.append(error)
    return results, errors


def _sorted_out(serde: Serde, values: list[Any], errors: list[str | None]) -> tuple[list[Any], list[str | None]]:
    """Turn each value that is not of the serde's type into an error."""
    for number, value in enumerate(values):
        try:
            _values(serde, [value])
        except ValueError as failure:
            values[number], errors[number] = None, str(failure)
    return values, errors


def _values(serde: Serde, values: list[Any]) -> "pa.Array":
    """Return values as Arrow has them, of the serde's type."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    arrow_type = to_arrow_type(serde.data_type, timezone="UTC")
    try:
        return pa.array(values, arrow_type)
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        plain = [plain_value(value) for value in values]
    for value in plain:
        try:
            pa.array([value], arrow_type)
        except (pa.ArrowException, TypeError, OverflowError, ValueError) as failure:
            raise ValueError(
                f"{serde} read {value!r}, which is not of its data_type {serde.data_type.simpleString()}: {failure}."
            ) from None
    return pa.array(plain, arrow_type)


def plain_value(value: Any) -> Any:
    """Return a value as Spark's Columns have it: records of a class as dicts, a UUID and an Enum as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain_value(asdict(value))
    if isinstance(value, Mapping):
        return {name: plain_value(each) for name, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain_value(value._asdict())
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, Enum):
        return value.name
    return str(value) if isinstance(value, UUID) else value


def _attempted(values: "pa.Array", errors: list[str | None]) -> "pa.Array":
    import pyarrow as pa

    return pa.StructArray.from_arrays([values, pa.array(errors, pa.string())], ["value", "error"])
