"""Python in Spark's real-time mode: a worker that gets one row at a time."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from streamskit.jvm import java_class


def with_ends(frame: DataFrame) -> DataFrame:
    """Return rows with one behind the last of each batch, for each task that has any: its `port` is `BATCH_END`.

    Args:
        frame: with the columns of `row_format.SCHEMA`.
    """
    every: Column = F.struct("*")
    rows = ClassicColumn(java_class("Functions").withEnds(every._jc))
    return frame.select(rows)


def run_python_task(frame: DataFrame, command: bytes, python: str, variables: Mapping[str, str]) -> DataFrame:
    """Return what Python workers make of rows, of which each worker has those of one `task`.

    Args:
        frame: with the columns of `row_format.SCHEMA`, in that order, as the one that is returned.
        command: what a worker unpacks and runs.
        python: how Python is started.
        variables: of its environment.
    """
    made = java_class("PythonTask").run(frame._jdf, bytearray(command), python, dict(variables))
    return DataFrame(made, frame.sparkSession)
