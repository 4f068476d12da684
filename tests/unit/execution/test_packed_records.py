"""Records that travel to Python together: those of one task in one row, in their order."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from streamskit.execution.arrow_batches import table_of
from streamskit.execution.row_format import NAMES, SCHEMA, TASK
from streamskit.execution.row_format import Row as Record
from streamskit.jvm.functions import packed, unpacked
from tests.unit.execution.packed_rows import pack, rows_of

pytestmark = pytest.mark.spark

DATA = st.none() | st.binary(max_size=5)
HEADERS = st.none() | st.lists(st.builds(Row, st.text(max_size=3), DATA), max_size=2)
RECORDS = st.lists(
    st.tuples(
        st.integers(-4, 300), st.none() | st.text(max_size=3), *[DATA] * 5, st.none() | st.integers(-1, 2**40), HEADERS,
        st.integers(0, 2), st.integers(-1, 3), st.integers(0, 2**40), st.integers(0, 3),
    )
)  # fmt: skip


def packs(spark: SparkSession, records: list[Record]) -> list[tuple[int, list[Record]]]:
    """Return the rows that records are packed into, in one partition of Spark: the task, and the records in each."""
    frame = spark.createDataFrame(records, SCHEMA).coalesce(1).select(packed(F.struct("*")))
    return [(row.task, rows_of(table_of(row.records), NAMES)) for row in frame.collect()]


def plain(record: Record) -> Record:
    """Return a record with its headers as Python gets them."""
    headers = record[8]
    as_read = None if headers is None else [{"key": key, "value": value} for key, value in headers]
    return (*record[:8], as_read, *record[9:])


@settings(max_examples=10)
@given(RECORDS)
def test_the_records_of_each_task_come_together_and_in_order(spark: SparkSession, records: list[Record]) -> None:
    made = packs(spark, records)
    tasks = list(dict.fromkeys(record[TASK] for record in records))
    assert made == [(task, [plain(each) for each in records if each[TASK] == task]) for task in tasks]


@settings(max_examples=5)
@given(RECORDS.filter(bool), st.integers(1, 3))
def test_columns_that_hold_a_constant_at_the_end_come_with_the_others(
    spark: SparkSession, records: list[Record], constants: int
) -> None:
    own = len(NAMES) - constants
    frame = spark.createDataFrame([(*record[:TASK], 1, *record[TASK + 1 :]) for record in records], SCHEMA).coalesce(1)
    made = [F.lit(number).cast("bigint" if name == "position" else "int").alias(name)
            for number, name in enumerate(NAMES)]  # fmt: skip
    [row] = frame.select(*NAMES[:own], *made[own:]).select(packed(F.struct("*"))).collect()
    expected = [plain((*record[:TASK], 1, *record[TASK + 1 : own], *range(own, len(NAMES)))) for record in records]
    assert rows_of(table_of(row.records), NAMES) == expected


@settings(max_examples=10)
@given(st.lists(RECORDS.filter(bool), max_size=3))
def test_what_python_has_packed_spark_takes_apart_again(spark: SparkSession, records: list[list[Record]]) -> None:
    rows = [(pack([plain(each) for each in some]),) for some in records]
    frame = spark.createDataFrame(rows, "records binary").coalesce(1).select(unpacked(F.col("records"), SCHEMA))
    assert frame.schema.simpleString() == spark.createDataFrame([], SCHEMA).schema.simpleString()
    assert [plain(tuple(row)) for row in frame.collect()] == [plain(each) for some in records for each in some]


def test_a_row_holds_ten_thousand_records_or_little_more_than_8_mb(spark: SparkSession) -> None:
    columns = {name: F.lit(None) for name in NAMES} | {"task": F.lit(0), "position": F.col("id")}
    numbers = spark.range(0, 25_000, 1, 1)
    long = F.when(F.col("id").between(20_000, 20_009), F.repeat(F.lit("x"), 2_000_000).cast("binary"))
    record = F.struct(*(column.alias(name) for name, column in (columns | {"value": long}).items()))
    rows = numbers.select(packed(record)).collect()
    positions = [[position for (position,) in rows_of(table_of(row.records), ["position"])] for row in rows]
    assert list(chain(*positions)) == list(range(25_000))
    assert [len(each) for each in positions] == [10_000, 10_000, 5, 5, 4_990]
