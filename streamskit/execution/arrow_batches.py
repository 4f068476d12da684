"""Hands records to Python by the thousand: one row of Spark holds a whole Arrow batch of them.

Spark gives `transformWithState` its rows one at a time, at about ten microseconds each, which would be most of the cost
of a record. A batch that travels as the bytes of one row costs a twentieth of that.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:  # it takes a while, and this module is read wherever a stage is
    import pyarrow as pa

PACKED = "task int, records binary"


def pack(frame: DataFrame) -> DataFrame:
    """Return a frame in which each row holds the records of one task in an Arrow batch, in order.

    Args:
        frame: with the column task and any others. The result has the columns task and records, the bytes of a batch.
    """
    return frame.mapInArrow(_pack, PACKED)


def unpack(data: bytes, names: list[str]) -> list[tuple[Any, ...]]:
    """Return the records in a packed row as tuples of the named columns."""
    import pyarrow as pa

    batch = pa.ipc.open_stream(data).read_all()
    return list(zip(*(_values(batch.column(name)) for name in names), strict=True))


def _pack(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        if not batch.num_rows:
            continue
        # A partition of a topic is one task, but records of a global table are for all of them.
        for task in batch.column("task").unique():
            mine = batch.filter(pc.equal(batch.column("task"), task))
            buffer = pa.BufferOutputStream()
            with pa.ipc.new_stream(buffer, mine.schema) as writer:
                writer.write_batch(mine)
            blob = pa.array([buffer.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([task.as_py()], pa.int32()), blob], ["task", "records"])


def _values(column: "pa.ChunkedArray") -> Any:
    # Most columns are empty most of the time.
    return repeat(None, len(column)) if column.null_count == len(column) else column.to_pylist()
