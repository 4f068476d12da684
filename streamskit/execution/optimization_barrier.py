"""Makes Spark compute Columns once, by a frame that the optimizer moves nothing past."""

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.execution.record_columns import Datum, RecordColumns


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
