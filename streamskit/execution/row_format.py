"""The rows that travel between the operators of a query: where they go, and their contents as bytes."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

HEADER_TYPE = "array<struct<key: string, value: binary>>"

FIELDS = {
    "port": "int",  # which operator input this is for, or which operator's result it is
    "topic": "string",  # where a row goes that is finished
    "key": "binary",
    "value": "binary",
    "old": "binary",
    "other": "binary",
    "other_old": "binary",
    "timestamp": "bigint",
    "headers": HEADER_TYPE,
}

FINISHED_FIELDS = ("topic", "key", "value", "timestamp", "headers")
"""The columns of a record to write."""

ORDER = {"task": "int", "origin": "int", "position": "bigint", "step": "int"}
"""Where a row came from: its task, the topic, the offset, and its number among the rows made of one record."""

NAMES = [*FIELDS, *ORDER]
Row = tuple[Any, ...]
"""A row as Python sees it, its values in the order of `NAMES`."""

PORT, TOPIC, KEY, VALUE, OLD, OTHER, OTHER_OLD, TIMESTAMP, HEADERS, TASK, ORIGIN, POSITION, STEP = range(len(NAMES))

RESULT_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in (FIELDS | ORDER).items() if name != "step")
"""The columns of what operators make of packed rows: each is the only one of its place, and its step is 0."""

SCHEMA = f"{RESULT_SCHEMA}, step {ORDER['step']}"

SIDES = 100
"""How many sides an operator may have: side s of operator number n is port `n * SIDES + s`."""

RESULTS = 1_000_000
"""Ports from here on are results: of operator number `port - RESULTS`."""

AT_ONCE = 500_000
"""Is added to the port of a result that the record cache has not merged, for steps that look rows up."""

DROPPED = -1
"""The port of a row that says how many records were dropped (in `position`), and by which operator (in `origin`)."""

CLOCK = -2
"""The port of a row that moves the wall clock of a test driver."""

BEGIN = -4
"""The port of a row that says which record the rows after it come from.

Its topic is in `topic`, and beyond the first stage its partition and offset are in `other_old`.
"""

SOURCE = -6
"""The port of a row that says the same where that record began earlier, and the rows after it were held back."""

TIME_UNDECIDED = b"time undecided"
"""Stands in `other` of a `BEGIN` row whose record gets its time from an operator."""

BATCH_END = -5
"""The port of a row that says, in real-time mode, that a task's batch has ended."""

FINISHED = -3
"""The port of a row that is a record to write to its topic."""

TO_OWN_PARTITION = b"own partition"
"""Stands in `other` of a finished row that goes to the partition with the number of its task, whatever its key."""

TO_PARTITIONER = b"to partitioner of "
"""Begins `other` of a finished row whose partitions a user's partitioner chooses; the sink's name follows."""

SEQUENCE = -1
"""The origin of rows that an operator made: their position is their order."""


def port_of(operator: int, side: int) -> int:
    """Return the port of a side of an operator."""
    return operator * SIDES + side


def row_struct(port: int | Column, **values: Column | None) -> Column:
    """Return a row as a struct; fields that are not given are null."""
    given = {"port": F.lit(port) if isinstance(port, int) else port} | values
    return F.struct(
        *((F.lit(None) if given.get(name) is None else given[name]).cast(kind).alias(name)  # type: ignore[union-attr]
          for name, kind in FIELDS.items())
    )  # fmt: skip
