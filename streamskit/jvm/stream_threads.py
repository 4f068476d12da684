"""How many tasks of a query Spark runs at a time, which `streamskit/jvm/StreamThreads.scala` enforces."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from streamskit.jvm import java_class


def end_of_stage(frame: DataFrame, application_id: str) -> DataFrame:
    """Return the last rows of a stage, those before a shuffle or a sink, as they are.

    The stage has as many tasks as its application has stream threads when Spark plans a micro-batch, unless it has
    fewer by itself. A task that has several partitions takes them one after the other.

    Args:
        frame: with any columns; they stay.
        application_id: of the application; "" where nothing is to be limited.
    """
    if not application_id:
        return frame
    return ClassicDataFrame(_threads().endOfStage(frame._jdf, application_id), frame.sparkSession)


def set_stream_threads(application_id: str, number: int | None) -> None:
    """Limit each query of an application to so many slots, from its next micro-batch on; None for all."""
    _threads().set(application_id, number or 0)


def stream_threads_of(job: Any) -> int | None:
    """Return how many slots a query was to use in one of Spark's jobs; None for all there were."""
    return _threads().tagged(job.jobTags()) or None


def _threads() -> Any:
    return java_class("StreamThreads")
