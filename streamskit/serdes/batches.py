"""Serdes that run in Python: Spark hands their records over in Arrow batches, not one at a time."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.serdes.errors import RegistryError, SerdeError

if TYPE_CHECKING:
    import pyarrow as pa

    from streamskit.serdes.serde import Serde


def read(serde: "Serde", data: Column) -> Column:
    """Return the values that a serde reads in a Column of bytes; the first that it cannot read is raised."""
    import pyarrow as pa

    def read_batch(batch: pa.Array) -> pa.Array:
        return _values(serde, [_given(serde.deserialize_row, each) for each in batch.to_pylist()])

    return _column(read_batch, serde.data_type, data)


def write(serde: "Serde", value: Column) -> Column:
    """Return the bytes that a serde writes for a Column; the first value that it cannot write is raised."""
    import pyarrow as pa

    def write_batch(batch: pa.Array) -> pa.Array:
        return pa.array([_given(serde.serialize, each) for each in _rows(batch)], pa.binary())

    return _column(write_batch, T.BinaryType(), value)


def try_read(serde: "Serde", data: Column) -> Column:
    """Return structs of what a serde reads and of the error where it cannot."""
    import pyarrow as pa

    def try_read_batch(batch: pa.Array) -> pa.Array:
        values, errors = _attempts(serde.deserialize_row, serde.cannot_read, batch.to_pylist())
        try:
            read = _values(serde, values)
        except ValueError:  # one of them is not of the serde's type: find out which
            values, errors = _sorted_out(serde, values, errors)
            read = _values(serde, values)
        return _tried(read, errors)

    return _column(try_read_batch, tried_type(serde.data_type), data)


def try_write(serde: "Serde", value: Column) -> Column:
    """Return structs of the bytes that a serde writes and of the error where it cannot."""
    import pyarrow as pa

    def try_write_batch(batch: pa.Array) -> pa.Array:
        written, errors = _attempts(serde.serialize, serde.cannot_write, _rows(batch))
        return _tried(pa.array(written, pa.binary()), errors)

    return _column(try_write_batch, tried_type(T.BinaryType()), value)


def tried_type(data_type: T.DataType) -> T.StructType:
    """Return the Spark type of an attempt: the value, and the error where there is none."""
    return T.StructType([T.StructField("value", data_type), T.StructField("error", T.StringType())])


def _column(function: Callable[["pa.Array"], "pa.Array"], data_type: T.DataType, column: Column) -> Column:
    # Spark sees by the function's hints that it takes and gives whole batches.
    return F.arrow_udf(function, data_type)(column)  # type: ignore[call-overload]


def _given(function: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else function(value)


def _rows(batch: "pa.Array") -> list[Any]:
    values: list[Any] = batch.to_pylist(maps_as_pydicts="strict")
    return values


def _attempts(
    function: Callable[[Any], Any], refused: Callable[[Any, object], SerdeError], values: list[Any]
) -> tuple[list[Any], list[str | None]]:
    """Call a serde's function on each value, and return what it gives, and the sentence where it raises."""
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


def _sorted_out(serde: "Serde", values: list[Any], errors: list[str | None]) -> tuple[list[Any], list[str | None]]:
    """Make an error of each value that is not of the serde's type."""
    for number, value in enumerate(values):
        try:
            _values(serde, [value])
        except ValueError as failure:
            values[number], errors[number] = None, str(failure)
    return values, errors


def _values(serde: "Serde", values: list[Any]) -> "pa.Array":
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


def _tried(values: "pa.Array", errors: list[str | None]) -> "pa.Array":
    import pyarrow as pa

    return pa.StructArray.from_arrays([values, pa.array(errors, pa.string())], ["value", "error"])
