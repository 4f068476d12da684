"""The end of a stage: which task takes which partitions where an application has stream threads."""

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamskit.jvm.stream_threads import end_of_stage, set_stream_threads

pytestmark = pytest.mark.spark

PARTITIONS = 5


@pytest.fixture(autouse=True)
def forgotten(spark: SparkSession) -> Iterator[None]:
    yield
    set_stream_threads("app", None)


def numbers(spark: SparkSession, application_id: str = "app") -> DataFrame:
    """Return ten numbers in five partitions, two in each, at the end of their stage."""
    return end_of_stage(spark.range(0, 2 * PARTITIONS, 1, PARTITIONS), application_id)


def by_task(frame: DataFrame) -> list[list[int]]:
    """Return the numbers that each task takes, in the order in which it takes them."""
    return [[row.id for row in rows] for rows in frame.rdd.glom().collect()]


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        (1, [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]),
        (2, [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7]]),
        (3, [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5]]),
        (7, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]),
    ],
)
def test_a_task_takes_whole_partitions_one_after_the_other(
    spark: SparkSession, threads: int, expected: list[list[int]]
) -> None:
    set_stream_threads("app", threads)
    assert by_task(numbers(spark)) == expected


def test_each_micro_batch_is_planned_by_the_number_that_holds_then(spark: SparkSession) -> None:
    for threads in (2, 4, 1):
        set_stream_threads("app", threads)
        assert len(by_task(numbers(spark))) == threads
    set_stream_threads("app", None)
    assert len(by_task(numbers(spark))) == PARTITIONS


def test_without_a_number_nothing_is_added_to_a_plan(spark: SparkSession) -> None:
    set_stream_threads("app", 2)
    assert "Coalesce 2" in plan_of(numbers(spark))
    for application_id in ("other-app", ""):
        plain = plan_of(numbers(spark, application_id))
        assert plain.startswith(("*(1) Range", "Range"))


def test_a_stage_without_partitions_stays_without(spark: SparkSession) -> None:
    set_stream_threads("app", 2)
    nothing = spark.createDataFrame(spark.sparkContext.emptyRDD(), "id bigint")
    assert by_task(end_of_stage(nothing, "app").groupBy("id").count()) == [[]] * 4
