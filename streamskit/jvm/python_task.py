"""Python in Spark's real-time mode: a worker that gets one row at a time."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from streamskit.jvm import java_class


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
