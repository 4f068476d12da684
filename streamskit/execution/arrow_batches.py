"""Hands records to Python by the thousand: one row of Spark holds a whole Arrow batch of them.

Spark gives `transformWithState` its rows one at a time, at about ten microseconds each, which would be most of the cost
of a record. A batch that travels as the bytes of one row costs a twentieth of that.
"""

from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it takes a while, and this module is read wherever a stage is
    import pyarrow as pa


def unpack(data: bytes, names: list[str]) -> list[tuple[Any, ...]]:
    """Return the records in a packed row as tuples of the named columns."""
    import pyarrow as pa

    batch = pa.ipc.open_stream(data).read_all()
    return list(zip(*(_values(batch.column(name)) for name in names), strict=True))


def _values(column: "pa.ChunkedArray") -> Any:
    # Most columns are empty most of the time.
    return repeat(None, len(column)) if column.null_count == len(column) else column.to_pylist()
