"""Tasks whose operators run in Python, as `streamskit/jvm/PythonTask.scala` starts them."""

from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame

from streamskit.jvm import java_class


def run_by_row(frame: DataFrame, processor: Any) -> DataFrame:
    """Return what Python workers make of rows; each worker gets those of one `task`, one by one.

    Args:
        frame: with the columns of `row_format.SCHEMA`, in that order, as the one that is returned.
        processor: a `task_processor.TaskProcessor`, which a worker runs.
    """
    return _run("byRow", frame, processor)


def run_by_batch(frame: DataFrame, processor: Any) -> DataFrame:
    """Return what Python workers make of packed rows; each worker gets those of one `task`.

    Args:
        frame: with the columns task and records, as `functions.packed` makes them; what is returned has records.
        processor: a `task_processor.TaskProcessor`, which a worker runs.
    """
    return _run("byBatch", frame, processor)


def _run(how: str, frame: DataFrame, processor: Any) -> DataFrame:
    context = frame.sparkSession.sparkContext
    command: bytes = CPickleSerializer().dumps(processor)  # type: ignore[no-untyped-call]
    variables = {**context.environment, "SPARK_REUSE_WORKER": "1"}  # after its task it takes another one
    includes = list(context._python_includes or ())
    run = getattr(java_class("PythonTask"), how)
    return DataFrame(run(frame._jdf, bytearray(command), context.pythonExec, variables, includes), frame.sparkSession)
