"""Rows as Spark and the tasks hand them over, packed by column, made of tuples and taken apart again."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamskit.execution.arrow_batches import columns_of, pack_columns
from streamskit.execution.row_format import Row


def pack(rows: Sequence[Row]) -> bytes:
    """Return rows as the bytes of an Arrow stream."""
    return pack_columns(list(zip(*rows, strict=True)))


def rows_of(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    """Return the rows of a table as tuples of the named columns."""
    return list(zip(*columns_of(table, names), strict=True))
