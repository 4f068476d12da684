"""Hands records to Python by the thousand: one row of Spark holds a whole Arrow batch of them. Takes results back.

Spark gives `transformWithState` its rows one at a time, at about ten microseconds each, which would be most of the cost
of a record. A batch that travels as the bytes of one row costs a twentieth of that. Results go to Spark as the Arrow
columns that they are; Spark would look at each element of any others, one by one.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from streamskit.execution.row_format import NAMES

if TYPE_CHECKING:  # they take a while, and this module is read wherever a stage is
    import pandas as pd
    import pyarrow as pa


def unpack(data: bytes, names: list[str]) -> list[tuple[Any, ...]]:
    """Return the records in a packed row as tuples of the named columns."""
    batch = table_of(data)
    return list(zip(*(_values(batch.column(name)) for name in names), strict=True))


def table_of(data: bytes) -> "pa.Table":
    """Return the records in a packed row as a table."""
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()


def frame_of_rows(columns: Mapping[str, Sequence[Any]]) -> "pd.DataFrame":
    """Return rows as a data frame that Spark takes as it is.

    Args:
        columns: the values in each column of `row_format.SCHEMA`.
    """
    import pyarrow as pa

    kinds = _kinds()
    headers = columns["headers"]
    return _frame({name: pa.array(columns[name], kind) for name, kind in kinds.items()}, headers)


def frame_of_table(table: "pa.Table") -> "pd.DataFrame":
    """Return a table with the columns of `row_format.SCHEMA` as a data frame that Spark takes as it is."""
    columns = {name: table.column(name).cast(kind).combine_chunks() for name, kind in _kinds().items()}
    return _frame(columns, list(_values(table.column("headers"))))


def _frame(columns: "dict[str, pa.Array]", headers: Sequence[Any]) -> "pd.DataFrame":
    import numpy as np
    import pandas as pd

    made: dict[str, Any] = {name: pd.Series(pd.arrays.ArrowExtensionArray(column)) for name, column in columns.items()}
    # Spark takes a column of lists apart by itself, and only one of Python's objects.
    as_objects = np.empty(len(headers), dtype=object)
    as_objects[:] = headers
    made["headers"] = pd.Series(as_objects)
    return pd.DataFrame({name: made[name] for name in NAMES}, copy=False)


def _kinds() -> "dict[str, pa.DataType]":
    """Return the Arrow type of each column but the headers."""
    import pyarrow as pa

    whole, long, text, data = pa.int32(), pa.int64(), pa.string(), pa.binary()
    kinds = dict(zip(NAMES, [whole, text, *[data] * 5, long, None, whole, whole, long, whole], strict=True))
    del kinds["headers"]
    return kinds


def _values(column: "pa.ChunkedArray") -> Any:
    # Most columns are empty most of the time.
    return repeat(None, len(column)) if column.null_count == len(column) else column.to_pylist()
