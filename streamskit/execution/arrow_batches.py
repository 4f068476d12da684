"""Hands records to Python by the thousand, and takes results back: one Spark row holds a whole Arrow batch of them.

Spark gives `transformWithState` its rows one at a time, at about ten microseconds each, which would be most of the cost
of a record. A batch that travels as the bytes of one row costs a twentieth of that.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from streamskit.execution.row_format import NAMES

if TYPE_CHECKING:  # they take a while to import, and every module with a stage imports this one
    import pyarrow as pa


def columns_of(table: "pa.Table", names: list[str]) -> list[list[Any]]:
    """Return the named columns of a table, with Python's values."""
    return [_values(table.column(name)) for name in names]


def table_of(data: bytes) -> "pa.Table":
    """Return the records in a packed row as a table."""
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()


def pack_columns(columns: Sequence[Sequence[Any]]) -> bytes:
    """Return columns, in the order of `row_format.NAMES`, as the bytes of an Arrow stream.

    >>> row = (3, "out", b"k", None, None, None, None, 1000, [{"key": "id", "value": b"7"}], 0, 1, 42, 0)
    >>> columns = [[value] for value in row]
    >>> columns_of(table_of(pack_columns(columns)), NAMES) == columns
    True
    """
    import pyarrow as pa

    schema = _schema()
    arrays = [_column(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
    return pack_table(pa.Table.from_arrays(arrays, schema=schema))


def pack_table(table: "pa.Table") -> bytes:
    """Return a table that has the columns of `row_format.SCHEMA` as the bytes of an Arrow stream."""
    import pyarrow as pa

    buffer, schema = pa.BufferOutputStream(), _schema()
    with pa.ipc.new_stream(buffer, schema) as stream:
        stream.write_table(table.select(NAMES).cast(schema))
    data: bytes = buffer.getvalue().to_pybytes()
    return data


@cache
def _schema() -> "pa.Schema":
    import pyarrow as pa

    whole, long, text, data = pa.int32(), pa.int64(), pa.string(), pa.binary()
    headers = pa.list_(pa.struct([("key", text), ("value", data)]))
    kinds = [whole, text, *[data] * 5, long, headers, whole, whole, long, whole]
    return pa.schema(list(zip(NAMES, kinds, strict=True)))


def _column(values: Sequence[Any], kind: "pa.DataType") -> "pa.Array":
    """Return values, of which any may be None, as an Arrow array. `pa.array` would import pandas to look at them."""
    import numpy as np
    import pyarrow as pa

    empty = values.count(None)
    if empty == len(values):
        return pa.nulls(len(values), kind)
    valid = None
    if empty:
        valid = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little"))
    if pa.types.is_list(kind):
        inner = [header for headers in values if headers for header in headers]
        parts = [_column([header[field.name] for header in inner], field.type) for field in kind.value_type]
        headers = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
        return pa.ListArray.from_buffers(kind, len(values), [valid, _offsets(values)], children=[headers])
    if pa.types.is_integer(kind):
        given = [value or 0 for value in values] if empty else values
        numbers = np.fromiter(given, kind.to_pandas_dtype(), len(values))
        return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(numbers)])
    if pa.types.is_string(kind):
        values = [None if value is None else value.encode() for value in values]
    data = pa.py_buffer(b"".join(filter(None, values)))
    return pa.Array.from_buffers(kind, len(values), [valid, _offsets(values), data])


def _offsets(values: Sequence[Any]) -> "pa.Buffer":
    """Return where each value begins, and where the last one ends, if they are stored back to back."""
    import numpy as np
    import pyarrow as pa

    offsets: np.ndarray = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([len(value) if value else 0 for value in values], out=offsets[1:])
    return pa.py_buffer(offsets)


def _values(column: "pa.ChunkedArray") -> list[Any]:
    # Most columns are empty most of the time.
    values: list[Any] = [None] * len(column) if column.null_count == len(column) else column.to_pylist()
    return values
