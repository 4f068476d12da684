"""Columns that Spark's own functions do not have: those of the Scala classes in `streamskit/jvm`."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from streamskit.jvm import java_class

ZONE = "UTC"
"""The zone of times without one, as streamskit's own sessions have it."""


def attempt(column: Column) -> Column:
    """Return a Column of structs: `value`, and `error`, which says what went wrong where there is no value.

    Args:
        column: made of Spark's own functions. What a Python function in it raises is caught by `columns.udf_errors`.

    >>> attempt(F.lit("one").cast("bigint"))["error"]
    """
    return ClassicColumn(_functions().attempt(column._jc))


def value_or_failure(made: Column) -> Column:
    """Return a Column of the values in structs of `value` and `error`, which fails with the error where there is one.

    Args:
        made: structs made by a Python function, whose error message `attempt` then passes on unchanged.
    """
    return ClassicColumn(_functions().valueOrFailure(made._jc))


def read_json(data: Column, data_type: T.DataType, serde: str) -> Column:
    """Return a Column of the values in bytes, each of which has to be one JSON value of a type.

    Args:
        data: the bytes; a null, or the JSON value null, is a null.
        data_type: what the values are. Fields that it does not name are passed over, missing ones are null.
        serde: the name that errors about other bytes mention.

    Spark's `from_json` reads text only, takes an empty one for null and stops after the first value.
    """
    return ClassicColumn(_functions().readJson(data._jc, data_type.json(), serde, ZONE))


def write_json(value: Column) -> Column:
    """Return a Column of bytes: each value as the JSON text that Spark's `to_json` makes of it, with its null fields.

    Only a value with a time that milliseconds do not hold has its times in microseconds.

    Args:
        value: structs, arrays or maps; a null is a null.
    """
    return ClassicColumn(_functions().writeJson(value._jc, ZONE))


def read_number(data: Column, data_type: T.DataType, serde: str) -> Column:
    """Return a Column of the numbers in big-endian bytes; bytes of another length fail.

    Args:
        data: the bytes; a null is a null.
        data_type: long, integer, short, float or double.
        serde: the name that the error mentions.
    """
    return ClassicColumn(_functions().readNumber(data._jc, data_type.json(), serde))


def stream_time(partition: Column, timestamp: Column, folder: str, size: int, grace: int) -> Column:
    """Return a Column of structs: the stream time of each record's partition, and what Spark's watermark needs of it.

    Args:
        partition: which partition of its topic a record is of.
        timestamp: its timestamp in milliseconds; null for a record that does not count. Rows come in the order of
            their offsets.
        folder: where the times are kept from one micro-batch to the next.
        size: how long windows are, in milliseconds.
        grace: how long after its end a window takes records, in milliseconds.

    Returns:
        `stream_time` is the largest timestamp of the partition so far, this record's included. Spark has one watermark
        for partitions that may be far apart in time: before Spark sees the end of a window, add `shift` to it if the
        window starts after the time `after`, else `shift_before`. `closed` is the time, shifted in the same way, up to
        which windows had closed in all partitions before this micro-batch; null in the first.

    Mirrors `observedStreamTime` in `org.apache.kafka.streams.kstream.internals.KStreamWindowAggregate`.
    """
    return ClassicColumn(_functions().streamTime(partition._jc, timestamp._jc, folder, size, grace))


def row_place(timestamp: Column) -> Column:
    """Return a Column of structs: `time`, the latest timestamp among the rows of Spark's task up to each, and `place`.

    Args:
        timestamp: of a row, in milliseconds; a null does not count.

    Returns:
        `place` is a number that grows from row to row, and from task to task.
    """
    return ClassicColumn(_functions().rowPlace(timestamp._jc))


def partition_of(key: Column, suffix: int, partitions: int) -> Column:
    """Return a Column of the partition into which Kafka's producer puts a record; null where it picks at random.

    Args:
        key: the record's key in bytes; null if it has none.
        suffix: how many bytes at the end of a key do not count: those of its window.
        partitions: how many partitions the topic has.
    """
    return ClassicColumn(_functions().partitionOf(key._jc, suffix, partitions))


def packed(record: Column) -> Column:
    """Return a Column that makes one row of many: `task`, and `records`, an Arrow stream of records of that task.

    Args:
        record: a struct, of whose fields `task` is an integer. The records of a task stay in order; a row holds 10,000
            of them at most, or a little more than 8 MB.
    """
    return ClassicColumn(_functions().pack(record._jc))


def unpacked(records: Column, schema: str) -> Column:
    """Return a Column that turns a packed row back into the rows it was made of.

    Args:
        records: the bytes of an Arrow stream.
        schema: the columns of the rows, as Spark writes them.
    """
    return ClassicColumn(_functions().unpack(records._jc, schema))


def with_ends(row: Column) -> Column:
    """Return a Column that passes rows on and, after the last of each batch, adds one for each task that has any.

    Args:
        row: a struct with the fields of `row_format.SCHEMA`; the `port` of the rows that are added is `BATCH_END`.
    """
    return ClassicColumn(_functions().withEnds(row._jc))


def driver_told(what: Column, driver: str) -> Column:
    """Return a Column that is always true, and reports to a test driver which records were dropped.

    Args:
        what: a struct with a field for each node: a long, how many records it has dropped, or a text, what was wrong
            with one of them. A null says nothing.
        driver: the id of the driver's query.
    """
    return ClassicColumn(_functions().driverTold(what._jc, driver))


def driver_place(driver: str) -> Column:
    """Return a Column of the number of the record that a test driver's query is processing, counted from 1.

    Args:
        driver: the id of the query.
    """
    return ClassicColumn(_functions().driverPlace(driver))


def _functions() -> Any:
    return java_class("Functions")
