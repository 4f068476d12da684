"""Makes Spark compute Columns once, by a frame that the optimizer moves nothing past."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.columns import udf_errors
from streamskit.execution.record_columns import Datum, RecordColumns

BY_CHANCE = re.compile(
    r"(?<![\w.])(aes_encrypt|monotonically_increasing_id|rand|randn|random|randstr|shuffle|uniform|uuid"
    rf"|{udf_errors.BY_CHANCE}\d+_[^(]*)\s*\(",
    re.IGNORECASE,
)
"""Functions that give something else each time they are called, as a Column shows them or SQL spells them: Spark's
own, and those of Python that are declared with `asNondeterministic()`."""

LONG = 5_000
"""From how many characters on a Column is computed ahead. A table's filter uses its value three times, so a chain of
them, written out, would be three times as long with each step, and so would be Spark's time to plan it."""


def materialize_once(frame: DataFrame, *more: Column) -> DataFrame:
    """Return a frame, with more columns, that Spark computes before whatever follows.

    Args:
        frame: with any columns; the result has these, `more`, and a column `once`.
        more: further columns, with names.
    """
    return select_once(frame, "*", *more)


def select_once(frame: DataFrame, *columns: Column | str, where: str = "true") -> DataFrame:
    """Return columns of a frame that Spark computes before whatever follows.

    Otherwise it would push a later filter down and duplicate the Columns in it, which means that each record read is
    decoded twice. It never moves a filter past a column that might differ from call to call, and `once` counts as such;
    that column stays in the frame, and Spark drops it where nothing uses it.

    Args:
        frame: with any columns.
        columns: what is selected; the result has these, and a column `once`.
        where: which rows are kept, as a condition in SQL on those columns.
    """
    made = frame.select(*columns, F.spark_partition_id().alias("once"))
    return made.where(f"once >= 0 and {where}")


def materialize_records_once(
    frame: DataFrame, records: dict[int, tuple[RecordColumns, Column]]
) -> tuple[DataFrame, dict[int, RecordColumns]]:
    """Return a frame with what numbered records are made of as columns, and the records as those columns.

    However often a key, a value or a condition is used afterwards, it is computed once. Each record comes with the
    condition under which a row is that record.
    """
    columns: dict[str, Column] = {}

    def add(name: str, column: Column, is_one: Column) -> None:
        columns[name] = F.when(is_one, column).alias(name)

    for number, (record, is_one) in records.items():
        add(f"key_{number}", record.key.typed, is_one)
        add(f"value_{number}", record.value.typed, is_one)
        if record.old is not None:
            add(f"old_{number}", record.old.typed, is_one)
        if record.condition is not None:
            add(f"condition_{number}", record.condition, is_one)
    if columns:
        frame = materialize_once(frame, *columns.values())

    def renewed(record: RecordColumns, number: int) -> RecordColumns:
        old = record.old and _typed(record.old, frame[f"old_{number}"])
        key, value = _typed(record.key, frame[f"key_{number}"]), _typed(record.value, frame[f"value_{number}"])
        condition = None if record.condition is None else frame[f"condition_{number}"]
        return replace(record, key=key, value=value, old=old, condition=condition)

    return frame, {number: renewed(record, number) for number, (record, _) in records.items()}


def _typed(datum: Datum, column: Column) -> Datum:
    return replace(datum, typed=column)


# ---- computed ahead --------------------------------------------------------------------------------------------------


@dataclass
class ComputedAhead:
    """Columns that a frame computes before what uses them: those that chance decides, and long ones.

    Kafka Streams calls a function once for each record; `F.rand()` would give each consumer of a record something else.
    `condition` says which rows of the frame are such records, if not all.
    """

    condition: Column | None = None
    _columns: dict[str, Column] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)
    _branches: list[tuple[str, RecordColumns, Column]] = field(default_factory=list)

    def taken_once(self, given: RecordColumns, made: RecordColumns) -> RecordColumns:
        """Return what a step made of a record, with such Columns in it replaced by the frame's."""
        for part in ("key", "value", "old"):
            datum: Datum | None = getattr(made, part)
            if datum is not None and datum is not getattr(given, part):
                taken: Any = {part: self._datum(datum, given)}
                made = replace(made, **taken)
        if made.condition is not None and made.condition is not given.condition and is_by_chance(made.condition):
            made = replace(made, condition=self._add(made.condition, given))
        return made

    def _datum(self, datum: Datum, record: RecordColumns) -> Datum:
        text = _text(datum.typed)
        if BY_CHANCE.search(text) is not None:
            return Datum(self._add(datum.typed, record))
        if len(text) > LONG:
            datum = replace(datum, typed=self._add(datum.typed, record))
        if datum.raw is not None and is_long(datum.raw):
            datum = replace(datum, raw=self._add(datum.raw, record))
        return datum

    def branch(self, split: str, record: RecordColumns, number: Column) -> Column:
        """Return the number of the branch that a record takes after the node `split`, the same for each branch."""
        for name, known, column in self._branches:
            if name == split and known is record:
                return column
        self._branches.append((split, record, self._add(number, record)))
        return self._branches[-1][2]

    def _add(self, column: Column, record: RecordColumns) -> Column:
        """Have the frame compute a Column for the records that are kept, and return it as a column of the frame."""
        name = f"ahead_{next(self._numbers)}"
        for condition in (record.condition, self.condition):
            column = column if condition is None else F.when(condition, column)
        self._columns[name] = column
        return F.col(name)

    def added_to(self, frame: DataFrame) -> DataFrame:
        """Return the frame of the records, with any columns, and with those computed ahead since the last call."""
        for name, column in self._columns.items():  # one may be made of those before
            frame = materialize_once(frame.drop("once"), column.alias(name))
        self._columns.clear()
        return frame


def is_by_chance(column: Column) -> bool:
    """Return whether Spark might compute a Column differently each time."""
    return BY_CHANCE.search(_text(column)) is not None


def is_long(column: Column) -> bool:
    """Return whether a Column is too long to be written out wherever the next step uses it."""
    return len(_text(column)) > LONG


def _text(column: Column) -> str:
    inside: Any = column._jc  # a Column of ours has no text of its own: it refuses to be put into an f-string
    text: str = inside.toString()
    return text
