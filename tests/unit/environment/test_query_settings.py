"""Settings of the session that all threads share, while queries are started."""

import threading

import pytest
from pyspark.sql import SparkSession

from streamskit.environment.session import query_settings, settings

pytestmark = pytest.mark.spark

NAME = "spark.sql.shuffle.partitions"


def test_of_two_threads_that_start_a_query_one_waits_and_what_is_set_for_longer_holds_up_none(
    spark: SparkSession,
) -> None:
    before, seen, begun = spark.conf.get(NAME), list[str | None](), threading.Event()

    def start_another() -> None:
        begun.set()
        with query_settings(spark, {NAME: "5"}):
            seen.append(spark.conf.get(NAME))

    thread = threading.Thread(target=start_another)
    with settings(spark, {NAME: "3"}):
        with query_settings(spark, {NAME: "4"}):
            thread.start()
            assert begun.wait(10)
            thread.join(0.3)
            assert thread.is_alive()
            assert (spark.conf.get(NAME), seen) == ("4", [])
        thread.join(10)
        assert seen == ["5"]
        assert spark.conf.get(NAME) == "3"
    assert spark.conf.get(NAME) == before
