"""Tasks whose operators run in Python, as `streamskit/jvm/PythonTask.scala` starts them."""

import pickle
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from streamskit.common.errors import TopologyError
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
    command = pickled(processor)
    variables = {**context.environment, "SPARK_REUSE_WORKER": "1"}  # after its task it takes another one
    includes = list(context._python_includes or ())
    run = getattr(java_class("PythonTask"), how)
    return DataFrame(run(frame._jdf, bytearray(command), context.pythonExec, variables, includes), frame.sparkSession)


def pickled(processor: Any) -> bytes:
    """Return a processor as it is sent to the Python workers.

    Args:
        processor: a `task_processor.TaskProcessor`.

    Raises:
        TopologyError: a function in it holds what cannot be sent; the sentence names the step.
    """
    try:
        return _dumped(processor)
    except Exception as failure:
        names = [each.name for each in getattr(processor, "operators", ()) if not _can_be_sent(each)]
        if not names:
            raise
        raise TopologyError(
            f"What '{', '.join(names)}' calls cannot be sent to Spark's Python workers, which are other processes: "
            f"{failure}. A lock, an open file, a connection or a SparkSession stays where it was made. Make it inside "
            "the function, or in the init() of a processor."
        ) from failure


def _can_be_sent(operator: Any) -> bool:
    try:
        _dumped(operator)
    except Exception:
        return False
    return True


def _dumped(thing: Any) -> bytes:
    packed: bytes = cloudpickle.dumps(thing, pickle.HIGHEST_PROTOCOL)  # type: ignore[no-untyped-call]
    return packed
